"""Functions of ``lib`` as small JavaScript modules, for exhibits that compute."""
