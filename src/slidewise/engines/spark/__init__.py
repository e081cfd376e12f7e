"""Spark, batch and streaming. Nothing here imports PySpark before it is used."""
