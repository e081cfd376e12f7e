"""A file that cannot be loaded."""

trend = no_such_name  # noqa: F821
