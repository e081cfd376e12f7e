"""The library of operators, by theme. Knows nothing of windows.

    making.py       how a function here becomes public; parameter checks; the kinds of input
    arithmetic.py   count sum product mean geomean
    moments.py      var std covariance correlation slope
    order.py        min max spread min_count max_count argmin argmax
    position.py     first last nth_youngest m4

`OPERATORS` maps each public name to its function.
"""

from slidewise.operators.arithmetic import count_ as count
from slidewise.operators.arithmetic import geomean_ as geomean
from slidewise.operators.arithmetic import mean_ as mean
from slidewise.operators.arithmetic import sum_ as sum
from slidewise.operators.making import REGISTRY
from slidewise.operators.moments import std_ as std
from slidewise.operators.moments import var_ as var
from slidewise.operators.order import argmax_ as argmax
from slidewise.operators.order import argmin_ as argmin
from slidewise.operators.order import max_ as max
from slidewise.operators.order import max_count_ as max_count
from slidewise.operators.order import min_ as min
from slidewise.operators.order import min_count_ as min_count
from slidewise.operators.order import spread_ as spread
from slidewise.operators.position import first_ as first
from slidewise.operators.position import last_ as last

OPERATORS = {name: entry.function for name, entry in REGISTRY.items()}
"""Every operator of the library: name -> the function that makes it."""
