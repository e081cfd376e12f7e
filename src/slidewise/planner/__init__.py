"""From what a user asks to what is run, and why. One Plan, read by every engine and by `explain`.

request.py   the call, checked: columns, names, windows, aggregates
inputs.py    how each column reaches an operator (number, ticks, rank, row number, Python object), and back
ladder.py    the rungs: which algorithm serves which operator and windows, with its paper and reason; the last is recalc
slices.py    panes, pairs, Cutty slices; the shared plan of many (range, slide) queries
plan.py      Plan and its Steps
explain.py   the plan in words
"""
