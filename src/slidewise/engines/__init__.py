"""Where the data lives: frames on this machine, Spark in batches, Spark as a stream.

An engine knows no algorithm by name: it asks the planner.
"""
