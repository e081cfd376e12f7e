"""The library of operators, by theme. Knows nothing of windows.

    making.py        how a function here becomes public; parameter checks; the kinds of input
    arithmetic.py    count sum mean                                    integers in two words, never wrapping
    exact.py         the superaccumulator of sum and mean (exact=True)
    products.py      product geomean
    moments.py       var std covariance correlation slope              central moments, merged
    order.py         min max spread min_count max_count argmin argmax
    position.py      first last nth_youngest m4
    bits.py          any all bit_and bit_or bit_xor
    collections.py   collect collect_distinct concat top_k median      on ropes (rope.py)
    histogram.py     histogram
    quantile.py      quantile                                          a KLL sketch
    hll.py           approx_distinct                                   HyperLogLog, on the hash of hashing.py
    sketches.py      approx_count bloom                                count-min and Bloom filter, on the same hash
    naive_bayes.py   naive_bayes
    wide.py          rows of numbers that combine word by word

`OPERATORS` maps each public name to its function; `table()` describes them all.
"""

from slidewise.operators.arithmetic import count_ as count
from slidewise.operators.arithmetic import mean_ as mean
from slidewise.operators.arithmetic import sum_ as sum
from slidewise.operators.bits import all_ as all
from slidewise.operators.bits import any_ as any
from slidewise.operators.bits import bit_and_ as bit_and
from slidewise.operators.bits import bit_or_ as bit_or
from slidewise.operators.bits import bit_xor_ as bit_xor
from slidewise.operators.collections import collect_ as collect
from slidewise.operators.collections import collect_distinct_ as collect_distinct
from slidewise.operators.collections import concat_ as concat
from slidewise.operators.collections import median_ as median
from slidewise.operators.collections import top_k_ as top_k
from slidewise.operators.histogram import histogram_ as histogram
from slidewise.operators.hll import approx_distinct_ as approx_distinct
from slidewise.operators.making import REGISTRY
from slidewise.operators.moments import correlation_ as correlation
from slidewise.operators.moments import covariance_ as covariance
from slidewise.operators.moments import slope_ as slope
from slidewise.operators.moments import std_ as std
from slidewise.operators.moments import var_ as var
from slidewise.operators.naive_bayes import naive_bayes_ as naive_bayes
from slidewise.operators.order import argmax_ as argmax
from slidewise.operators.order import argmin_ as argmin
from slidewise.operators.order import max_ as max
from slidewise.operators.order import max_count_ as max_count
from slidewise.operators.order import min_ as min
from slidewise.operators.order import min_count_ as min_count
from slidewise.operators.order import spread_ as spread
from slidewise.operators.position import first_ as first
from slidewise.operators.position import last_ as last
from slidewise.operators.position import m4_ as m4
from slidewise.operators.position import nth_youngest_ as nth_youngest
from slidewise.operators.products import geomean_ as geomean
from slidewise.operators.products import product_ as product
from slidewise.operators.quantile import quantile_ as quantile
from slidewise.operators.sketches import approx_count_ as approx_count
from slidewise.operators.sketches import bloom_ as bloom
from slidewise.operators.table import table

OPERATORS = {name: REGISTRY[name].function for name in sorted(REGISTRY)}
"""Every operator of the library: name -> the function that makes it."""
