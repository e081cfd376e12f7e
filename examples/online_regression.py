"""An operator of one's own: online linear regression, y = a + b x, over a sliding window.

Three functions make it: `lift` one event into a state, `combine` two states, `lower` a state into what people read. The state
holds means and central sums, not raw sums of squares, so nothing cancels.

    python examples/online_regression.py
"""

from typing import NamedTuple

import pyarrow as pa

import slidewise as sw


class Sums(NamedTuple):
    n: float
    x: float
    y: float
    xx: float
    xy: float


class Line(NamedTuple):
    intercept: float
    slope: float


def lift(x, y):
    return Sums(1.0, x, y, 0.0, 0.0)


def combine(a, b):
    n = a.n + b.n
    if n == 0.0:
        return a
    dx, dy, share = b.x - a.x, b.y - a.y, a.n * b.n / n
    return Sums(n, a.x + dx * b.n / n, a.y + dy * b.n / n, a.xx + b.xx + dx * dx * share, a.xy + b.xy + dx * dy * share)


def lower(s):
    slope = s.xy / s.xx if s.xx > 0.0 else 0.0
    return Line(s.y - slope * s.x, slope)


regression = sw.operator(lift=lift, combine=combine, lower=lower, identity=Sums(0.0, 0.0, 0.0, 0.0, 0.0), name="regression")


def main() -> None:
    sw.check_laws(regression, samples=[(0.0, 1.0), (1.0, 3.0), (2.5, 4.0), (-1.0, 0.5)])
    print(f"associative; compiled: {regression.compiled}")
    steps = 40
    data = pa.table({
        "t": list(range(steps)),
        "x": [float(t) for t in range(steps)],
        "y": [2.0 * t + 1.0 if t < 20 else 100.0 - 3.0 * t for t in range(steps)],
    })
    out = sw.rolling(data, time="t", windows=[sw.rows(10)], aggs={"line": regression("x", "y")})
    last = out["line_10r"][-1].as_py()
    print(f"the last ten points: y = {last['intercept']:.1f} {last['slope']:+.1f} x")
    assert abs(last["slope"] + 3.0) < 1e-9
    assert abs(out["line_10r"][15].as_py()["slope"] - 2.0) < 1e-9


if __name__ == "__main__":
    main()
