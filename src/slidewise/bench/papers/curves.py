"""Curves that the papers speak of, told from rows: what is logarithmic rises, and in a straight line over the logarithm.

How claims are judged, everywhere in this folder:

    a gain ("3.4 times", "15 % faster")          nine tenths of it, or more
    a range ("10 to 100 times")                  within it, with some room above
    "similar", "marginal", "slightly", "a constant"    bounds on both sides
    "consistently", "at all window sizes"        at every point that was measured
    "latency"                                    the median and the 99.9th percentile, not the median alone
"""

from collections.abc import Iterable, Sequence

import numpy as np


def log_fit(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float, float]:
    """a and b of a + b log2 x by least squares, and R²."""
    logs, found = np.log2(xs), np.array(ys)
    b, a = np.polyfit(logs, found, 1)
    left = found - (a + b * logs)
    return float(a), float(b), float(1 - (left**2).sum() / max(((found - found.mean()) ** 2).sum(), 1e-300))


def is_logarithmic(xs: Sequence[float], ys: Sequence[float], straight: float = 0.85, grown: float = 1.2) -> bool:
    """Whether ys are a straight line over log x that rises: by a fifth at least, since a flat line is a constant."""
    _, b, r2 = log_fit(xs, ys)
    return r2 >= straight and b > 0 and ys[-1] >= grown * ys[0]


def span(ratios: Iterable[float], form: str = ".2f") -> str:
    """From the least to the greatest."""
    found = list(ratios)
    return f"{min(found):{form}} to {max(found):{form}}" if found else "none"
