"""Frames on this machine. Arrow at the border; compiled loops over all keys at once.

run.py       execute a plan on Arrow tables: `run`, `run_as_of`
keys.py      keys of any type as small numbers; times as ticks
order.py     sort once by (key, time, order); where each key begins
targets.py   what the results are for (rows, keys, boundaries, queries), and the frames of each
sweeps.py    the passes of a step: arrays, parts for threads
slicing.py   the same over the slices of the plan
loops.py     the compiled loops
columns.py   an Arrow column -> what an operator reads; results -> an Arrow column
frames.py    pandas and Polars to Arrow and back
threads.py   both cores, Ctrl-C, progress
"""
