"""B-tree with aggregates: the classic tree that FiBA is measured against, O(log n) for every change wherever it is.

fiba-2019 section 3.1. The same nodes, arity and rebalancing as fiba.py, without fingers: a search starts at the root, every
node keeps the aggregate of all that is below it (in its parent's row, the root's in its own), and a change repairs all of
them up to the root. All leaves have mu - 1 to 2 mu - 1 entries, those at the ends too.

                 a .. u
            +--- g   o ---+                 query: the root's aggregate, no combine
         a..f   h..n     p..u               insert, evict: one repair a level, 1 + log_mu(n) levels

The kernels are those of fiba.py for a Shape without fingers: what depends on fingers is decided when they are compiled. Range
queries, ranks and bulk operations work as there, from the root.
"""

from slidewise.algorithms.protocol import Info

INFO = Info(
    name="btree",
    paper="fiba-2019 section 3.1",
    summary="classic B-tree with the aggregate of each subtree: any order, every change repaired up to the root",
    order="any",
    bounds={
        "insert": "O(log n)",
        "evict": "O(log n)",
        "query": "0",
        "query_range": "O(log n)",
        "bulk_evict": "O(log n)",
        "bulk_insert": "O(m log n)",
    },
    offers=("items", "evict_at", "query_range", "bulk_evict", "bulk_insert"),
    stores="n + n / mu",
)
FINGERS = False
