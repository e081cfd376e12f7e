"""Claims that were once lenient (a logarithm without a slope, the median alone, "slightly" at any factor) against made-up rows,
good and bad. No test looks at a time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from slidewise.bench.papers import (
    bulk_fiba_2023,
    bulk_fiba_2023_throughput,
    daba_2015,
    daba_2015_latency,
    fiba_2019,
    fiba_2019_real,
    fiba_2019_rounds,
    reactive_2015,
    reactive_2015_slides,
    reactive_2015_windows,
    slickdeque_2018,
    slickdeque_2018_costs,
)
from slidewise.bench.papers.curves import is_logarithmic
from slidewise.bench.suite import Claim, Row, reasons


def holds(claims: list[Claim], word: str) -> str:
    """How the one claim with that word in it came out."""
    (found,) = [claim for claim in claims if word in claim.paper]
    return found.holds


def test_a_constant_is_no_logarithm():
    xs = [2**p for p in range(2, 12)]
    assert is_logarithmic(xs, [10 + 3 * np.log2(x) for x in xs])
    assert not is_logarithmic(xs, [10.0 for _ in xs])
    assert not is_logarithmic(xs, [10 + 0.01 * np.log2(x) for x in xs]), "it hardly rises"
    assert not is_logarithmic(xs, [100 - 3 * np.log2(x) for x in xs])
    assert not is_logarithmic(xs, [10.0 + x for x in xs])


def test_reasons_are_those_whose_conditions_hold():
    assert reasons((True, "One."), ([], "Two."), (3, "Three.")) == "One. Three."


CURVES = {
    "logarithmic": lambda n: 10 + 3 * np.log2(n),
    "flat": lambda n: 10.0,
    "falling": lambda n: 100 - 3 * np.log2(n),
    "linear": lambda n: 10.0 + n,
}


@pytest.mark.parametrize("curve", CURVES)
def test_logarithms_of_the_papers(curve):
    """Every claim of a logarithm: only the logarithm holds."""
    of, wanted = CURVES[curve], "yes" if curve == "logarithmic" else "no"
    windows = [2**p for p in range(1, 21)]
    costs = [
        {"function": "max", "scheme": "flatfat", "window": n, "ns": of(n), "throughput": 1.0, "combines": None} for n in windows
    ]
    assert holds(reactive_2015.claims_7(costs), "straight line over log n") == wanted
    slides = [
        {"function": "max", "scheme": s, "m": "1", "window": n, "slide": 1, "us": of(n), "combines": of(n)}
        for s in ("flatfat", "b_int")
        for n in windows
    ]
    assert holds(reactive_2015_slides.claims_11(slides), "same complexity") == wanted
    assert holds(reactive_2015_slides.claims_10([r for r in slides if r["scheme"] == "flatfat"]), "logarithmic in n") == wanted
    trees = [
        {"operator": "sum", "algorithm": f"b{kind}4", "n": 2**22, "d": d, "throughput": 1 / of(d + 2), "combines": of(d + 2)}
        for kind in ("finger", "classic")
        for d in fiba_2019.distances(2**22, 4)
    ]
    assert holds(fiba_2019.claims_11(trees), "log d trend") == wanted
    top = [
        {"function": "sum", "algorithm": a, "window": n, "throughput": 1.0, "combines": combines(n), "worst_combines": 6.0}
        for a, combines in (("flatfat", of), ("two_stacks", lambda n: 3.0), ("aba", lambda n: 3.0), ("daba", lambda n: 4.0))
        for n in windows
    ]
    assert holds(daba_2015.claims_top(top), "O(1) combines") == ("yes" if curve == "logarithmic" else "partly")
    fifo = [
        {"operator": o, "algorithm": a, "window": n, "throughput": 1 / of(n), "combines": of(n)}
        for o in ("sum", "bloom")
        for a in ("bfinger4", "bclassic4", "two_stacks", "daba", "flatfat")
        for n in windows
    ]
    assert holds(fiba_2019_rounds.claims_13(fifo), "clearly demonstrate O(log n)") == wanted
    assert holds(fiba_2019_rounds.claims_13(fifo), "obvious only with bloom") == "partly"  # with sum too, or with neither


def throughput(rate: Callable[[str, str, int], float]) -> list[Row]:
    return [
        {"function": f, "algorithm": a, "window": w, "throughput": rate(f, a, w), "combines": None, "worst_combines": None}
        for f in ("sum", "geomean", "bloom")
        for a in ("recalc", "flatfat", "two_stacks", "aba", "daba", "daba_uncached")
        for w in (2**4, 2**6, 2**8, 2**10, 2**14)
    ]


SPEED = {"recalc": 1.0, "flatfat": 2.0, "daba": 5.0, "daba_uncached": 4.5, "two_stacks": 6.0, "aba": 7.0}


def test_throughput_of_daba_2015():
    good = daba_2015.claims_top(throughput(lambda f, a, w: SPEED[a]))
    assert holds(good, "best throughput") == holds(good, "caching") == holds(good, "consistently outperformed") == "yes"
    growing = daba_2015.claims_top(throughput(lambda f, a, w: SPEED[a] * (w if a == "aba" else 1)))
    assert holds(growing, "a constant behind") == "partly"
    scratch = daba_2015.claims_top(throughput(lambda f, a, w: SPEED[a] * (9 if a == "recalc" else 1)))
    assert holds(scratch, "best throughput") == "partly", "best is of all"
    many = daba_2015.claims_top(throughput(lambda f, a, w: SPEED[a] / (84 if a == "daba_uncached" else 1)))
    assert holds(many, "caching") == "no", "84 times is neither marginal nor modest"
    alone = throughput(lambda f, a, w: SPEED[a] / (3 if (a, w) == ("daba", 2**14) else 1))
    assert holds(daba_2015.claims_top(alone), "lose throughput at large") == "partly", "DABA is not all"
    spared = daba_2015.claims_top(throughput(lambda f, a, w: 99.0 if (f, a) == ("bloom", "flatfat") and w < 2**8 else SPEED[a]))
    assert (holds(good, "the exception"), holds(spared, "the exception")) == ("no", "yes")


def spikes(at: list[int], height: float) -> list[Row]:
    return [
        {"function": "sum", "algorithm": a, "round": k, "window": 1000, "cycles": height if a != "daba" and k in at else 100.0}
        for a in daba_2015_latency.SWAGS
        for k in range(0, 20_000, 250)
    ]


def test_spikes_are_high_and_a_window_apart():
    def found(rows):
        return [claim.holds for claim in daba_2015_latency.claims_bottom(rows)]

    every = list(range(500, 20_000, 1000))
    assert found(spikes(every, 5000.0)) == ["yes", "yes"]
    assert found(spikes(every, 400.0)) == ["no", "yes"]
    assert found(spikes(list(range(0, 5000, 250)), 5000.0)) == ["yes", "no"], "as many, but not a window apart"
    assert found(spikes(every[::4], 5000.0)) == ["yes", "no"]


@pytest.mark.parametrize(("ratio", "verdict"), [(2.0, "no"), (10.0, "yes"), (110.0, "no")])
def test_a_range_has_two_ends(ratio, verdict):
    rows = [
        {"function": "sum", "algorithm": a, "window": 2**14, "average_cycles": 1.0, "deviation_cycles": deviation,
         "worst_cycles": 1.0, "combines": 3.0, "worst_combines": worst}
        for a, deviation, worst in (("two_stacks", ratio, 31.0), ("aba", ratio, 31.0), ("daba", 1.0, 6.0))
    ]  # fmt: skip
    claims = daba_2015_latency.claims_table_2(rows)
    assert holds(claims, "3 to 25 times") == verdict
    assert holds(claims, "as many as the window is long") == "partly", "31 of 1,024"


def latency(ns: Callable[[str, str], float]) -> list[Row]:
    """Rows of bulk-fiba-2023's latencies; `ns` by algorithm and quantile."""
    return [
        {"operator": "sum", "algorithm": a, "n": 2**22, "m": 1024, "d": 0, "combines": 10.0, "combines_of_a_quarter": 9.0,
         "p50_ns": ns(a, "p50"), "p99_9_ns": ns(a, "p99.9")}
        for a in bulk_fiba_2023.ALL
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("claims", "best", "word"),
    [
        (bulk_fiba_2023.claims_7, ("b_fiba4", "b_fiba8", "amta"), "best latencies of evicting"),
        (bulk_fiba_2023.claims_8, ("twostacks_lite", "daba_lite"), "best latencies of inserting"),
        (bulk_fiba_2023.claims_9, ("b_fiba4", "b_fiba8"), "lower latency than nb_fiba"),
    ],
)
def test_latency_is_more_than_the_median(claims, best, word):
    def rows(quantiles):
        found = latency(lambda a, quantile: 1.0 if (a in best) == (quantile in quantiles) else 9.0)
        return [row | {"combines": 1.0 if row["algorithm"].startswith("b_") else 9.0} for row in found]

    assert holds(claims(rows(("p50", "p99.9"))), word) == "yes"
    assert holds(claims(rows(("p50",))), word) == "partly"


def test_bulks_that_grow():
    rows = latency(lambda a, quantile: 1.0)
    for row in rows:
        looped = row["algorithm"] not in ("b_fiba4", "b_fiba8", "amta")
        row |= {"combines_of_a_quarter": 60.0, "combines": 240.0 if looped else 70.0}
    assert holds(bulk_fiba_2023.claims_7(rows), "O(log m)") == "yes"
    rows[0]["combines"] = 120.0  # twice for four times the bulk is the square root
    assert holds(bulk_fiba_2023.claims_7(rows), "O(log m)") == "partly"


def bulks(rate: Callable[[str, str, int], float], at: tuple[int, ...] = (0, 16, 256)) -> list[Row]:
    return [
        {"operator": o, "algorithm": a, "n": 2**22, "m": x or 1, "d": x, "throughput": rate(o, a, x), "combines": 1.0}
        for o in ("sum", "bloom")
        for a in bulk_fiba_2023.ALL
        for x in at
    ]


def why(claims: list[Claim], word: str) -> str:
    (found,) = [claim for claim in claims if word in claim.paper]
    return found.why


def test_whoever_is_ahead_of_bulks_is_told_with_the_operators_where_it_is():
    rows = latency(lambda a, quantile: 1.0 if a == "twostacks_lite" else 2.0 if a.startswith("b_") or a == "amta" else 9.0)
    rows += [row | {"operator": "bloom", "p50_ns": 9.0 if row["algorithm"] == "twostacks_lite" else row["p50_ns"]} for row in rows]
    assert "less than one cut through a tree (sum)." in why(bulk_fiba_2023.claims_7(rows), "best latencies of evicting")


@pytest.mark.parametrize(("rates", "verdict"), [
    ({0: 1, 2**8: 9, 2**12: 10, 2**16: 11, 2**20: 9.5}, "no"), ({0: 1, 2**8: 9, 2**12: 10, 2**16: 30, 2**20: 9.5}, "no"),
    ({0: 1, 2**8: 9, 2**12: 10, 2**16: 11, 2**20: 8}, "yes"), ({0: 99, 2**8: 9, 2**12: 10, 2**16: 11, 2**20: 9.5}, "no"),
])  # fmt: skip
def test_a_drop_at_the_largest_bulks_is_more_than_the_best_point_being_another(rates, verdict):
    rows = bulks(lambda o, a, m: rates[m], tuple(rates))
    assert holds(bulk_fiba_2023_throughput.claims_12([row | {"m": row["d"] or 1} for row in rows]), "drops") == verdict


@pytest.mark.parametrize(("ratios", "verdict"), [
    ((0.9, 0.8, 0.85, 1.1), "no"), ((1.1, 1.1, 1.1, 0.9), "partly"), ((1.2, 1.1, 1.1, 1.1), "yes"),
    ((0.9, 0.8, 1.05, 1.1), "partly"),
])  # fmt: skip
def test_a_mean_gain_that_is_a_loss_is_not_saved_by_one_window(ratios, verdict):
    rows = [
        {"function": "max", "algorithm": a, "window": 16 * 4**k, "throughput": ratio if a == "slick_deque" else 1.0}
        for k, ratio in enumerate(ratios)
        for a in ("slick_deque", "daba")
    ]
    assert slickdeque_2018._gain_claim(rows, 16, 0.07, "ahead from windows of 16 on").holds == verdict


@pytest.mark.parametrize(("quarter", "month", "verdict"), [
    (11_500, 950_000, "yes"), (17_980, 1_517_276, "no"), (11_500, 1_517_276, "partly"),
])  # fmt: skip
def test_windows_of_real_data_are_as_large_as_in_the_paper_or_not(quarter, month, verdict):
    def rows(behind):
        return [
            {"data": "bikes", "operator": "sum", "algorithm": a, "days": days, "events": 8_000_000, "mean_window": held,
             "throughput": 1.0 if a.startswith("bclassic") else 0.5 if days == behind else 2.0, "combines": None}
            for days, held in ((0.25, quarter), (32, month))
            for a in ("bfinger4", "bclassic4")
        ] + [
            {"data": "flights", "operator": "sum", "algorithm": a, "days": 32, "events": 300_000, "mean_window": 30_000,
             "throughput": 1.0 if a.startswith("bclassic") else 2.0, "combines": 3.0 if a.startswith("bclassic") else 1.0}
            for a in ("bfinger4", "bclassic4")
        ]  # fmt: skip

    assert holds(fiba_2019_real.claims_15(rows(None)), "windows hold about") == verdict
    assert "low trees leave fingers little" in why(fiba_2019_real.claims_15(rows(0.25)), "outperform")
    assert "low trees" not in why(fiba_2019_real.claims_15(rows(32)), "outperform"), "large windows have high trees"


@pytest.mark.parametrize(("sum_", "bloom", "told"), [(1.6, 1.1, "More than marginal for sum"), (0.7, 1.1, "For sum the cache"),
                                                     (1.0, 0.9, "For Bloom not consistent")])  # fmt: skip
def test_what_caching_brings_is_explained_by_what_it_brought(sum_, bloom, told):
    rate = {(f, a, w): gain if a == "daba" else 1.0 for f, gain in (("sum", sum_), ("bloom", bloom))
            for a in ("daba", "daba_uncached") for w in (16, 64)}  # fmt: skip
    found = daba_2015._caching(rate)
    assert found.holds == "partly"
    assert found.why.startswith(told)
    assert found.why.count(".") == 1


@pytest.mark.parametrize(("times", "verdict"), [(0.9, "partly"), (1.1, "yes"), (84.0, "partly")])
def test_slightly_is_slightly(times, verdict):
    rows = bulks(lambda o, a, d: (times if o == "bloom" else 0.8) if a.startswith("b_") else 1.0)
    assert holds(bulk_fiba_2023_throughput.claims_14(rows), "slightly better") == verdict


def test_throughput_over_bulks_and_distances():
    claims = bulk_fiba_2023_throughput.claims_11
    assert holds(claims(bulks(lambda o, a, m: 1.0 + m)), "improves with larger bulks") == "yes"
    peak = bulks(lambda o, a, m: 9.0 if m == 16 else 1.0)
    assert holds(claims(peak), "improves with larger bulks") == holds(claims(peak), "improves too") == "no", "it falls again"
    claims = bulk_fiba_2023_throughput.claims_13
    assert holds(claims(bulks(lambda o, a, d: 1.0)), "does not slow") == "yes"
    assert holds(claims(bulks(lambda o, a, d: 0.3 if d == 16 else 1.0)), "does not slow") == "no", "slow in the middle"


def single(rate: Callable[[str, int], float]) -> list[Row]:
    return [
        {"function": "sum", "algorithm": a, "window": w, "throughput": rate(a, w), "combines": None, "worst_combines": None}
        for a in slickdeque_2018.SINGLE
        for w in (1, 4, 16, 2**10, 2**20)
    ]


def test_two_groups_and_small_windows_of_slickdeque():
    claims, flat = slickdeque_2018.claims_single("sum"), slickdeque_2018.CONSTANT
    assert holds(claims(single(lambda a, w: 1.0 if a in flat else 1 / w)), "two groups") == "yes"
    assert holds(claims(single(lambda a, w: 0.8 if a not in flat and w > 16 else 1.0)), "two groups") == "partly", "all are flat"
    for at_one, verdict in ((0.99, "yes"), (0.5, "no"), (2.0, "no")):
        rows = single(lambda a, w, at_one=at_one: at_one if (a, w) == ("slick_deque", 1) else 1.0)
        assert holds(claims(rows), "on smaller windows") == verdict


@pytest.mark.parametrize(("daba", "verdict"), [(400.0, "yes"), (220.0, "partly"), (50.0, "no")])
def test_the_greatest_latency(daba, verdict):
    greatest = {"slick_deque": 100.0, "daba": daba, "two_stacks": 5 * daba, "flatfit": 20 * daba}
    rows = [
        {"function": f, "algorithm": a, "label": a, "window": 1024, "figure": "greatest", "ns": ns}
        for f in ("sum", "max")
        for a, ns in greatest.items()
    ]
    claims = slickdeque_2018_costs.claims_14(rows)
    assert holds(claims, "283 %") == verdict
    assert holds(claims, "spikes of latency") == "partly", "five times is no walk through the window"


def test_what_the_clock_cannot_tell_is_no_lead():
    def rows(median: float, sums: float) -> list[Row]:
        return [
            {"function": f, "algorithm": a, "label": a, "window": 1024, "figure": word, "ns": ns if word == "greatest" else median}
            for f in ("sum", "max")
            for a, ns in {"slick_deque": 100.0, "daba": 400.0 * (sums if f == "sum" else 1), "two_stacks": 9000.0}.items()
            for word in ("median", "greatest")
        ]

    lowest, same = "lowest least, greatest", "nearly identical"
    found = slickdeque_2018_costs.claims_14(rows(0.0, 1.0))
    assert holds(found, lowest) == "yes" and any("in 2 of 2 figures; 2 more are nothing" in claim.here for claim in found)
    assert holds(found, same) == holds(found, "75 % on average") == "yes"
    assert holds(slickdeque_2018_costs.claims_14(rows(0.0, 0.2)), lowest) == "partly"
    assert holds(slickdeque_2018_costs.claims_14(rows(0.0, 0.2)), same) == "partly"
    untold = [{**row, "ns": 0.0} if row["algorithm"] == "daba" else row for row in rows(0.0, 1.0)]
    told = " ".join(claim.here for claim in slickdeque_2018_costs.claims_14(untold))
    assert "the greatest of TwoStacks is 90.0 times DABA's" in told and "DABA's is 1.0 times SlickDeque's" in told


def test_memory_as_much_as_naive_is_not_less():
    rows = [
        {"function": f, "algorithm": a, "label": a, "window": 64, "megabytes": mb, "bytes_an_event": 1.0, "partials": alive}
        for f in ("sum", "max")
        for a, mb, alive in (("recalc", 2.0, 64), ("slick_deque", 0.1, 20))
    ]
    claims = slickdeque_2018_costs.claims_15(rows)
    assert holds(claims, "as much memory as Naive") == "no"
    assert holds(claims, "few partials") == "no", "a third is not few"


def costs(ra: Callable[[int], float], iss: Callable[[int], float]) -> list[Row]:
    return [
        {"function": f, "scheme": s, "window": w, "ns": of(w), "throughput": 1.0, "combines": None}
        for f in ("max", "std")
        for s, of in (("flatfat", ra), ("recalc", iss))
        for w in (1, 1024, 4096)
    ]


@pytest.mark.parametrize(("small", "verdict"), [(0.5, "no"), (1.08, "yes"), (2.0, "no")])
def test_a_little_slower_is_not_faster(small, verdict):
    rows = costs(lambda w: small if w == 1 else 1.0, lambda w: 1.0 + w / 90 if w > 1 else 1.0)
    claims = reactive_2015.claims_6(rows)
    assert holds(claims, "slower on small windows") == verdict
    assert holds(claims, "grows further") == "yes"
    assert holds(reactive_2015.claims_6(costs(lambda w: 1.0, lambda w: 12.0)), "grows further") == "no"


@pytest.mark.parametrize(
    ("ratios", "verdicts"), [((1.1, 1.3), ["yes", "yes"]), ((84.0, 90.0), ["no", "yes"]), ((0.2, 0.5), ["no", "no"])]
)
def test_how_far_base_intervals_are_behind(ratios, verdicts):
    rows = [{"function": f, "window": w, "aw_over_ra": x} for f in ("sum", "max") for w, x in zip((8, 2**13), ratios)]
    claims = reactive_2015_slides.claims_table_4(rows)
    assert [holds(claims, "1.02 to 1.39"), holds(claims, "gap widens")] == verdicts


def test_a_constant_factor_is_constant():
    def rows(factor):
        return [
            {"function": "max", "scheme": s, "m": "1", "window": n, "slide": 1, "combines": None,
             "us": np.log2(n) * (factor(n) if s == "b_int" else 1)}
            for s in ("flatfat", "b_int")
            for n in (2**p for p in range(2, 12))
        ]  # fmt: skip

    assert holds(reactive_2015_slides.claims_11(rows(lambda n: 1.3)), "constant factor") == "yes"
    assert holds(reactive_2015_slides.claims_11(rows(lambda n: 1.0 + n)), "constant factor") == "partly"


def test_never_is_not_sooner_than_never():
    rows = [{"function": f, "break_even": None, "ten_times": None} for f in ("std", "mean", "sum", "max", "count", "collect")]
    assert holds(reactive_2015.claims_table_3(rows), "the sooner RA breaks even") == "no"


def test_tumbling_windows_and_resizing():
    rows = [
        {"function": f, "scheme": s, "window": 64, "us": us, "combines": 63.0 - (s == "flatfat")}
        for f, us in (("max", 1.0), ("std", 9.0))
        for s in ("recalc", "flatfat")
    ]
    claims = reactive_2015_windows.claims_8(rows)
    assert holds(claims, "whatever the function") == "no"
    assert holds(claims, "same n - 1 combines") == "no", "fewer is not the same"
    rows = [
        {"function": "std", "window": n, "resize_us": us, "capacity": c, "us": 1.0}
        for n, us in ((256, 1.0), (2**12, 9e5), (2**20, 9400.0))
        for c in ("fixed", "oscillating")
    ]
    assert holds(reactive_2015_windows.claims_9(rows), "doubling is linear") == "partly", "the middle is off the line"


def test_window_sharing_that_nearly_always_pays():
    def rows(faster):
        found = []
        for k, small in enumerate((1, 2**8, 2**12, 2**16)):
            for kind, rate, size in (("twin", 1.0, 200.0), ("range", 1.1 if k < faster else 0.9, 100.0)):
                found.append({"operator": "sum", "tree": "bfinger4", "small": small, "kind": kind, "n": 2**16, "throughput": rate,
                              "bytes": size})  # fmt: skip
        return found

    assert [holds(fiba_2019.claims_14(rows(k)), "consistently") for k in (0, 3, 4)] == ["yes", "yes", "no"]
    level = [row | {"bytes": 0.99 if row["kind"] == "range" else 1.0} for row in rows(2)]
    assert holds(fiba_2019.claims_14(level), "primary benefits") == "partly", "of two windows of a size, half must be saved"


def test_latencies_of_fingers():
    def rows(classic):
        return [
            {"operator": o, "algorithm": f"b{kind}{arity}", "d": d, **{c: classic(c) if kind == "classic" else 1.0 for c in (
                "min_ns", "p50_ns", "p99_9_ns", "max_ns", "mean_ns")}}
            for o in ("sum", "bloom") for kind in ("classic", "finger") for arity in (2, 4, 8) for d in (0, 2**20)
        ]  # fmt: skip

    median_only = fiba_2019_rounds.claims_12(rows(lambda column: 20.0 if column in ("p50_ns", "min_ns") else 1.0))
    assert holds(median_only, "significantly lower latency") == "partly"
    assert holds(median_only, "orders of magnitude better") == "yes"
    rare = fiba_2019_rounds.claims_12(rows(lambda column: 3.0 if column == "p99_9_ns" else 1.0))
    assert holds(rare, "both have similar") == "partly"
    assert holds(fiba_2019_rounds.claims_12(rows(lambda column: 2.5)), "worst cases") == "no"
    assert [holds(c, "average latency") for c in (rare, fiba_2019_rounds.claims_12(rows(lambda column: 2.5)))] == ["no", "yes"]


@pytest.mark.parametrize(("section", "verdict"), [((2, 3, 4), "yes"), ((4, 3, 2), "partly"), ((1, 1, 1), "no")])
def test_larger_nodes_make_longer_steps(section, verdict):
    """A round that grows by one level after so many doublings of the distance, for each arity."""
    rows = [
        {"operator": "sum", "algorithm": f"b{kind}{arity}", "n": 2**22, "d": d, "throughput": 1.0,
         "combines": 1.2 ** ((d or 1).bit_length() // length)}
        for kind in ("finger", "classic") for arity, length in zip((2, 4, 8), section) for d in fiba_2019.distances(2**22, 1)
    ]  # fmt: skip
    assert holds(fiba_2019.claims_11(rows), "step-like") == verdict
    few = [row for row in rows if row["d"] in fiba_2019.distances(2**22, 4)]
    assert holds(fiba_2019.claims_11(few), "step-like") == "unmeasured"


@pytest.mark.parametrize(("bloom", "verdict"), [(1.0, "partly"), (0.4, "yes"), (0.1, "partly")])
def test_about_sixty_per_cent_off(bloom, verdict):
    rows = [
        {"operator": o, "algorithm": a, "window": w, "throughput": rate, "combines": 1.0}
        for o, finger in (("sum", 0.8), ("bloom", bloom))
        for a, rate in (("bfinger4", finger), ("bclassic4", 0.1), ("two_stacks", 1.1), ("daba", 1.0))
        for w in (2**6, 2**8, 2**10)
    ]
    assert holds(fiba_2019_rounds.claims_13(rows), "about 60 % off") == verdict


def test_sums_lose_much_later():
    def rows(falls):
        found = throughput(lambda f, a, w: 0.1 if w >= falls[f] else 1.0)
        more = [row | {"window": 2**p} for row in found if row["window"] == 2**14 for p in (16, 18)]
        return [row | {"throughput": 0.1 if row["window"] >= falls[row["function"]] else 1.0} for row in (*found, *more)]

    late = rows({"sum": 2**18, "geomean": 2**14, "bloom": 2**6})
    assert holds(daba_2015.claims_top(late), "much later") == "yes"
    assert holds(daba_2015.claims_top(rows(dict.fromkeys(("sum", "geomean", "bloom"), 2**14))), "much later") == "no"


def test_who_is_second_and_what_is_slightly_dearer():
    second = single(lambda a, w: 2.0 if a == "slick_deque" else 1.0 if a == ("flatfat" if w <= 16 else "flatfit") else 0.5)
    assert holds(slickdeque_2018.claims_single("sum")(second), "second best is FlatFAT") == "yes"
    other = single(lambda a, w: 2.0 if a == "slick_deque" else 1.0 if a == "daba" else 0.5)
    assert holds(slickdeque_2018.claims_single("sum")(other), "second best is FlatFAT") == "no"
    for rate, verdict in ((0.9, "yes"), (0.1, "no"), (1.5, "no")):
        rows = [
            {"operator": "sum", "tree": "bfinger4", "small": 1, "kind": kind, "n": 2**16, "throughput": found, "bytes": 1.0}
            for kind, found in (("twin", 1.0), ("range", rate))
        ]
        assert holds(fiba_2019.claims_14(rows), "slightly more expensive") == verdict
