"""Wrong versions of ``lib`` that its tests notice: seeded samples of mutants."""
