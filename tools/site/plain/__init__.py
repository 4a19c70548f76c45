"""The notebooks that people download, in Markdown that every notebook program shows."""
