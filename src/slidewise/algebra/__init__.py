"""Operators and their laws, and how each kind of partial aggregate is stored. Knows nothing of windows.

    operator.py     Operator: lift, combine, lower, identity, laws; Bound: an operator and the columns it reads
    typed.py        Operator + input types -> TypedOperator: what algorithms run on
    narrow.py       smaller states for operators on integers, for as long as their numbers are small
    layout.py       scalar, struct and wide states in arrays of numbers
    kernel.py       the words algorithms are written in (get, put, lift, combine ...), compiled and interpreted
    casts.py        casts for operators that serve many input types: Python numbers, or 64-bit ones compiled
    cache.py        the disk cache of compiled code
    fingerprint.py  what compiled code is filed under
    laws.py         check_laws
    product.py      struct(a=op1, b=op2)
"""
