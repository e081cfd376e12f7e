"""The durable log and the cache of engines, without Spark: forks, rollbacks, failed commits, retries, damage, merging."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slidewise.engines.spark.log import NOTHING, Limits, Log, decode_head, encode_head
from slidewise.engines.spark.workers import Cache, Traffic
from slidewise.errors import StateError

SMALL = Limits(fan=3, young=2, full=6000, slack=10)


class MemoryStore:
    """A bucket's state as a dict. A copy is a checkpoint."""

    def __init__(self, head: bytes | None = None, entries: dict[int, bytes] | None = None):
        self.head, self.entries = head, dict(entries or {})

    def copy(self) -> MemoryStore:
        return MemoryStore(self.head, self.entries)

    def read_head(self):
        return self.head

    def write_head(self, data):
        self.head = data

    def read(self, number):
        return self.entries.get(number)

    def write(self, number, data):
        self.entries[number] = data

    def remove(self, number):
        self.entries.pop(number, None)

    def has_entries(self):
        return bool(self.entries)


class Collector:
    """The simplest engine: it knows which events it was given, and refuses one it has."""

    def __init__(self):
        self.events: set[int] = set()

    def absorb(self, table: pa.Table) -> None:
        new = table["event"].to_pylist()
        assert not self.events & set(new), "an event was absorbed twice"
        self.events |= set(new)

    @property
    def nbytes(self) -> int:
        return 100 + 8 * len(self.events)


def entry(events) -> pa.Table:
    return pa.table({"event": pa.array(list(events), pa.int64())})


def opened(store: MemoryStore, **changes) -> Log:
    settings = {"label": 5, "buckets": 8, "signature": b"{}", "limits": SMALL} | changes
    return Log(store, **settings)


def step(store: MemoryStore, cache: Cache, events, *, traffic: Traffic | None = None, commit: bool = True) -> set[int]:
    """One micro-batch. Without commit, Python is done and the store never hears of it."""
    log = opened(store if commit else store.copy())
    live = cache.take("bucket", log, Collector, traffic or Traffic())
    table = entry(events)
    live.engine.absorb(table)
    live.tail[log.append(table, max(events, default=None)).span] = table
    live.tail = log.compact(live.tail)
    log.commit()
    cache.give("bucket", live, log)
    return live.engine.events


def replayed(store: MemoryStore) -> set[int]:
    return Cache().take("bucket", opened(store), Collector, Traffic()).engine.events


def test_what_was_written_is_read_again() -> None:
    store, cache = MemoryStore(), Cache()
    for i in range(0, 100, 4):
        step(store, cache, range(i, i + 4))
    assert replayed(store) == set(range(100))


def test_a_batch_that_hits_the_cache_reads_no_entry() -> None:
    store, cache, reads = MemoryStore(), Cache(), []
    for i in range(60):
        log = opened(store)
        live = cache.take("bucket", log, Collector, Traffic())
        table = entry([i])
        live.engine.absorb(table)
        live.tail[log.append(table, i).span] = table
        live.tail = log.compact(live.tail)
        log.commit()
        cache.give("bucket", live, log)
        reads.append(log.reads)
    assert sum(reads) == 0
    assert log.head.segments[0].tier >= 2, "entries were merged meanwhile"
    assert replayed(store) == set(range(60))


@given(st.lists(st.sampled_from("aab"), min_size=30, max_size=80))
def test_a_hit_reads_nothing_whoever_merged_before(turns) -> None:
    """What another worker has merged, this one has in parts."""
    store, caches = MemoryStore(), {"a": Cache(), "b": Cache()}
    for i, worker in enumerate(turns):
        log, traffic = opened(store), Traffic()
        live = caches[worker].take("bucket", log, Collector, traffic)
        reads = log.reads
        table = entry([i])
        live.engine.absorb(table)
        live.tail[log.append(table, i).span] = table
        live.tail = log.compact(live.tail)
        log.commit()
        caches[worker].give("bucket", live, log)
        assert log.reads == reads, "merging reads nothing: all of it was at hand"
        assert not traffic.hits or reads == 0
    assert replayed(store) == set(range(len(turns)))


def test_catching_up_reads_only_what_came_since() -> None:
    store, here, there = MemoryStore(), Cache(), Cache()
    for i in range(20):
        step(store, here, [i])
    step(store, there, [20])
    step(store, here, [21])
    step(store, here, [22])
    traffic, log = Traffic(), opened(store)
    live = there.take("bucket", log, Collector, traffic)
    assert (traffic.hits, traffic.catch_ups, traffic.replays, log.reads) == (0, 1, 0, 2)
    assert live.engine.events == set(range(23))


def test_a_copied_checkpoint_that_went_another_way_is_not_taken_for_ours() -> None:
    store, cache = MemoryStore(), Cache()
    step(store, cache, [1])
    fork = store.copy()
    step(store, cache, [2])
    traffic = Traffic()
    assert step(fork, cache, [3], traffic=traffic) == {1, 3}, "same number of entries, another history"
    assert traffic.replays == 1
    assert step(store, cache, [4]) == {1, 2, 4}


def test_python_finished_but_the_commit_failed() -> None:
    store, cache = MemoryStore(), Cache()
    step(store, cache, [1, 2])
    step(store, cache, [3, 4], commit=False)
    assert step(store, cache, [4, 3]) == {1, 2, 3, 4}, "the retry brings the same events in another order"
    assert replayed(store) == {1, 2, 3, 4}


def test_two_workers_that_merge_by_turns_lose_nothing() -> None:
    """A merged segment ends where its last entry ended: who still holds that entry must not take it for the whole."""
    for seed in range(40):
        rng, store, caches = random.Random(seed), MemoryStore(), [Cache(), Cache()]
        for i in range(40):
            step(store, rng.choice(caches), [i])
            assert replayed(store) == set(range(i + 1))


def test_a_failed_batch_leaves_no_engine_behind() -> None:
    store, cache = MemoryStore(), Cache()
    step(store, cache, [1])
    live = cache.take("bucket", opened(store), Collector, Traffic())
    live.engine.absorb(entry([2]))  # and then the task dies
    assert len(cache) == 0
    assert step(store, cache, [2]) == {1, 2}


@given(st.lists(st.tuples(st.sampled_from("push fail fork back move".split()), st.integers(0, 2**16)), max_size=60))
def test_any_history_of_faults(moves) -> None:
    """Two workers, several checkpoints, batches that fail: the answer is always that of the checkpoint at hand."""
    caches = [Cache(), Cache()]
    stores: list[tuple[MemoryStore, frozenset]] = [(MemoryStore(), frozenset())]
    now = worker = 0
    serial = 0
    for move, seed in moves:
        store, known = stores[now]
        events = list(range(serial, serial + seed % 4))
        if move == "fork":
            stores.append((store.copy(), known))
        elif move == "back":
            now = seed % len(stores)
        elif move == "move":
            worker = 1 - worker
        elif move == "fail":
            assert step(store, caches[worker], events, commit=False) == known | set(events)
        else:
            random.Random(seed).shuffle(events)
            known = known | set(events)
            assert step(store, caches[worker], events) == known
            stores[now] = (store, known)
            serial += 4
    for store, known in stores:
        assert replayed(store) == known


# ---- merging and dropping ------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 300), min_size=1, max_size=120))
def test_merging_keeps_all_rows_and_few_segments(sizes) -> None:
    store, cache, at = MemoryStore(), Cache(), 0
    for size in sizes:
        step(store, cache, range(at, at + size))
        at += size
    log = opened(store)
    assert replayed(store) == set(range(at))
    assert set(store.entries) == {segment.number for segment in log.head.segments}, "nothing is left lying about"
    large = sum(segment.nbytes >= SMALL.full for segment in log.head.segments)
    assert len(log.head.segments) <= SMALL.young + 2 * (large + 1) * SMALL.fan * 5


def test_every_event_is_rewritten_a_few_times_only() -> None:
    """Hours of 10-second batches: a few dozen segments, and each byte is written once for each tier it passes."""
    store, cache = MemoryStore(), Cache()
    limits = Limits(fan=8, young=8, full=1 << 20, slack=1 << 30)
    written = raw = 0
    for i in range(3000):
        log = opened(store, limits=limits)
        live = cache.take("bucket", log, Collector, Traffic())
        table = entry(range(i * 10, i * 10 + 10))
        live.tail[log.append(table, i).span] = table
        raw += log.head.segments[-1].nbytes
        live.tail = log.compact(live.tail)
        assert log.reads == 0
        log.commit()
        written += log.bytes_written - len(store.head)
        cache.give("bucket", live, log)
    assert len(log.head.segments) < 60
    assert written < 3 * raw, f"{written / raw:.1f} bytes written for each of the log"
    assert len(store.head) < 8000


def test_what_lies_behind_the_horizon_is_dropped_but_for_the_last() -> None:
    store, cache = MemoryStore(), Cache()
    for i in range(10):
        step(store, cache, [i])
    log = opened(store)
    log.trim(8)
    log.commit()
    assert replayed(store) >= {8, 9}
    assert min(replayed(store)) >= 3, "a merged segment goes when all of it is behind"
    log = opened(store)
    log.trim(10**6)
    log.commit()
    assert len(store.entries) == len(log.head.segments) == 1
    log.trim(None)
    assert opened(store).tip == log.tip


def test_waste_is_rewritten() -> None:
    store, cache = MemoryStore(), Cache()
    for i in range(100):
        step(store, cache, [i])
    log = opened(store)
    assert log.wasteful(alive=5)
    assert not log.wasteful(alive=50)
    tip = log.tip
    log.rewrite([(entry([1, 2]), 2), (entry([3]), 3)])
    log.commit()
    assert replayed(store) == {1, 2, 3}
    assert opened(store).tip == tip, "it is the same state: engines that are there already stay good"
    assert len(store.entries) == 2
    step(store, Cache(), [4])
    assert replayed(store) == {1, 2, 3, 4}


def test_merging_keeps_the_notes_of_the_last() -> None:
    store, cache = MemoryStore(), Cache()
    for i in range(30):
        log = opened(store)
        live = cache.take("bucket", log, Collector, Traffic())
        log.append(entry([i]).replace_schema_metadata({"at": str(i)}), i)
        log.compact()
        log.commit()
        cache.give("bucket", live, log)
    log = opened(store)
    notes = [int(log.read(segment).schema.metadata[b"at"]) for segment in log.head.segments]
    assert notes == sorted(notes) and notes[-1] == 29 and notes[0] > 5


def test_the_cache_is_bounded_by_bytes() -> None:
    cache = Cache(limit=1000)
    stores = [MemoryStore() for _ in range(20)]
    for i, store in enumerate(stores):
        log = opened(store)
        live = cache.take(i, log, Collector, Traffic())
        live.engine.absorb(entry(range(10)))
        log.append(entry(range(10)), 9)
        log.commit()
        cache.give(i, live, log)
        assert cache.nbytes <= 1000
    assert 1 <= len(cache) <= 6
    traffic = Traffic()
    cache.take(19, opened(stores[19]), Collector, traffic)
    cache.take(0, opened(stores[0]), Collector, traffic)
    assert (traffic.hits, traffic.replays) == (1, 1), "the last one used is there, the first one went"


# ---- damage ----------------------------------------------------------------------------------------------------------------


def written() -> MemoryStore:
    store, cache = MemoryStore(), Cache()
    for i in range(4):
        step(store, cache, range(i * 10, i * 10 + 10))
    return store


@given(st.data())
def test_every_flipped_byte_is_found(data) -> None:
    store = written()
    number = data.draw(st.sampled_from([None, *store.entries]))
    blob = bytearray(store.head if number is None else store.entries[number])
    at = data.draw(st.integers(0, len(blob) - 1))
    blob[at] ^= data.draw(st.integers(1, 255))
    if number is None:
        store.head = bytes(blob)
    else:
        store.entries[number] = bytes(blob)
    with pytest.raises(StateError, match="bucket 5"):
        replayed(store)


@given(st.data())
def test_every_truncation_is_found(data) -> None:
    store = written()
    number = data.draw(st.sampled_from(list(store.entries)))
    store.entries[number] = store.entries[number][: data.draw(st.integers(0, len(store.entries[number]) - 1))]
    with pytest.raises(StateError, match=f"bucket 5, entry {number}"):
        replayed(store)


def test_a_missing_entry_is_an_error_not_an_empty_window() -> None:
    store = written()
    del store.entries[2]
    with pytest.raises(StateError, match="missing"):
        replayed(store)


def test_entries_without_a_head_are_not_a_new_bucket() -> None:
    store, cache = MemoryStore(), Cache()
    step(store, cache, [1, 2])
    store.head = None
    with pytest.raises(StateError, match="bucket 5: its head is missing and entries are there"):
        opened(store)


def test_entries_of_another_history_are_refused() -> None:
    one, other = written(), written()
    one.entries[2] = other.entries[2]
    with pytest.raises(StateError, match="another history"):
        replayed(one)


def test_a_broken_chain_is_refused() -> None:
    store = written()
    head = decode_head(store.head, "")
    del head.segments[1]
    store.head = encode_head(head)
    with pytest.raises(StateError, match="does not follow"):
        opened(store)


def test_another_number_of_buckets_is_refused() -> None:
    with pytest.raises(StateError, match="the checkpoint has 8 buckets, this query 16"):
        opened(written(), buckets=16)


def test_state_of_another_bucket_is_refused() -> None:
    with pytest.raises(StateError, match="bucket 5; the state was moved"):
        opened(written(), label=6)


def test_another_signature_is_put_to_the_question() -> None:
    store = written()

    def refuse(stored: bytes) -> None:
        raise StateError(f"no: {json.loads(stored)}")

    before = store.head
    with pytest.raises(StateError, match=r"no: \{\}"):
        opened(store, signature=b'{"windows": 2}', accept=refuse)
    assert store.head == before, "nothing was overwritten"
    log = opened(store, signature=b'{"windows": 2}', accept=lambda stored: None)
    log.commit()
    opened(store, signature=b'{"windows": 2}', accept=refuse)


def test_a_new_bucket_begins_with_nothing() -> None:
    store = MemoryStore()
    log = opened(store)
    assert (log.exists, log.tip, log.rows) == (False, NOTHING, 0)
    log.commit()
    assert opened(store).exists
