"""naive_bayes: counts of (label, feature) pairs, and the classifier they are. Exact and invertible."""

from slidewise.algebra.operator import Operator
from slidewise.errors import InputError, InputTypeError
from slidewise.operators.collections import value_key
from slidewise.operators.making import library, public


def _lift(label, feature):
    try:
        return {(value_key(label), value_key(feature)): 1}
    except TypeError as error:
        raise InputTypeError(f"naive_bayes takes values that can be hashed, not {label!r}, {feature!r}") from error


def _combine(a, b):
    if len(a) < len(b):
        a, b = b, a
    total = dict(a)
    for pair, n in b.items():
        total[pair] = total.get(pair, 0) + n
    return total


def _inverse(total, old):
    rest = dict(total)
    for pair, n in old.items():
        left = rest[pair] - n
        if left:
            rest[pair] = left
        else:
            del rest[pair]  # no trace of what has left
    return rest


def _sorted(keys) -> list:
    """By value, NaN last; by their text where values of several types have no order."""
    try:
        return sorted(keys, key=lambda key: tuple((part != part, part if part == part else 0) for part in key))
    except TypeError:
        return sorted(keys, key=repr)


def _counts(s):
    return [{"label": label, "feature": feature, "count": s[label, feature]} for label, feature in _sorted(s)]


def _decode(stored) -> dict:
    return {(value_key(label), value_key(feature)): n for (label, feature), n in stored.items()}


@public("naive_bayes", inputs="label, feature")
def naive_bayes_(*, given=None, smoothing: float = 1.0) -> Operator:
    """How often each (label, feature) pair occurs: a naive Bayes model of one feature, kept over the window.

    The result is a list of `{"label", "feature", "count"}`, in their order; an empty list for an empty window. `given=` asks
    the model instead: the most probable label of an event with that feature, by P(label) P(given | label) with Laplace
    smoothing; of equally probable ones the first in order.

    >>> sw.naive_bayes().fold(["spam", "ham", "spam"], ["offer", "hi", "offer"])
    [{'label': 'ham', 'feature': 'hi', 'count': 1}, {'label': 'spam', 'feature': 'offer', 'count': 2}]
    >>> sw.naive_bayes(given="offer").fold(["spam", "ham", "spam"], ["offer", "hi", "offer"])
    'spam'
    """
    if isinstance(smoothing, bool) or not isinstance(smoothing, (int, float)) or not 0 <= smoothing < float("inf"):
        raise InputError(f"naive_bayes: smoothing must be a number of at least 0, not {smoothing!r}")
    asked = value_key(given)

    def most_probable(s):
        totals: dict = {}
        for (label, _), n in s.items():
            totals[label] = totals.get(label, 0) + n
        features = len({feature for _, feature in s})
        best, best_odds = None, -1.0
        for (label,) in _sorted([(label,) for label in totals]):
            n = totals[label]
            share = n + smoothing * features
            odds = n * (s.get((label, asked), 0) + smoothing) / share
            if odds > best_odds:
                best, best_odds = label, odds
        return best

    params = {} if given is None else {"given": given, "smoothing": float(smoothing)}
    return library(
        "naive_bayes",
        lift=_lift,
        combine=_combine,
        lower=_counts if given is None else most_probable,
        identity={},
        inverse=_inverse,
        commutative=True,
        empty=[] if given is None else None,
        result_like=None if given is None else 0,
        decode=_decode,
        encode=dict,
        object_only=True,
        params=params,
        cost="expensive",
    )
