"""Which rows belong to which window. Knows times, keys and positions; knows nothing of values, engines or algorithms.

    duration.py     "1h", "15min", timedelta -> nanoseconds, and back to text
    spec.py         time, rows, tumbling, session, delta, punctuation, lifetime: what a user says
    clock.py        what the time column counts in; a user's window in the ticks of that column
    bounds.py       the one boundary rule: the frame [start, end) of sorted rows for each row, query or boundary
    positions.py    its compiled loops
    deltas.py       the runs of delta windows
    boundaries.py   slides: which boundaries there are
    calendar.py     local days: the ones that daylight saving makes 23 or 25 hours long

docs/boundaries.md draws the rule. Every engine takes its frames from here.
"""
