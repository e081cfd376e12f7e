"""A file that cannot be loaded."""

trend = {}["no such operator"]
