"""Frames on this machine. Arrow at the border; compiled loops over all keys at once.

    order.py     sort once by (key, time, order); where each key begins
    columns.py   an Arrow column -> what an operator reads; results -> an Arrow column
    run.py       execute a plan on a table
    frames.py    pandas and Polars to Arrow and back
"""
