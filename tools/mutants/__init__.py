"""How many wrong versions of ``lib`` its tests notice: seeded samples of mutants."""
