"""bulk-fiba-2023, section 7.3: very large windows. Memory for each entry, and what it does to throughput and latency.

b_fiba4 with geomean, as there. The paper's billion entries take 64 GB; here the largest window is what half of the memory holds.
"""

import numpy as np

from slidewise.bench.memory import available_bytes, give_back, memory_bytes, resident_bytes
from slidewise.bench.papers import trees
from slidewise.bench.papers.bulk_fiba_2023_rounds import Window
from slidewise.bench.suite import Claim, Panel, Plot, Progress, Row, Suite, View, claim, reasons, values
from slidewise.bench.tree_rounds import EVICT, Rounds

BYTES = 43
"""Of an entry in order, where nodes of this arity are as empty as they may be: to know what fits. In order no tree grows later."""


def minor_faults() -> int:
    try:
        import resource
    except ImportError:  # not on Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def largest() -> int:
    """The largest power of two, up to the paper's, of which half of the memory has room for the entries, and three quarters of what
    is free now."""
    return min(2**30, 1 << (min(memory_bytes() // 2, available_bytes() * 3 // 4) // BYTES).bit_length() - 1)


def windows() -> list[int]:
    """Sixteen times as large each, and the largest."""
    most = largest()
    return sorted({2**p for p in range(14, most.bit_length(), 4)} | {most})


def _refused(units: int = 0) -> None:
    """In order a tree never needs more room than it begins with; where it did, old and new arrays might not fit together."""
    raise MemoryError("this window would have to be copied to grow")


MILLION = 2**20


def measure(
    windows: list[int], m: int, rounds: int, seconds: float, progress: Progress, operator: str = "geomean"
) -> list[Row]:
    """For each window a row with everything, for bulks of m; and two with the throughput alone, for other bulks.

    Latencies are of one run over the window as it is: a copy to begin again from would take as much memory once more."""
    rows: list[Row] = []
    Window("b_fiba4", operator, 4 * m, 0).run(16, m, False)  # compiled now: a compiler takes memory too
    for n in windows:
        give_back()
        if available_bytes() < n * BYTES * 5 // 4:
            progress(f"window {n:,} left out: other processes have the memory")
            continue
        progress(f"window {n:,}")
        before = resident_bytes()
        made = Window("b_fiba4", operator, n, 0)
        assert isinstance(made.of, Rounds)
        made.of.forest.grow = _refused  # type: ignore[method-assign]
        made.run(16, m, False)
        held = (resident_bytes() or 0) - (before or 0)
        used, faults = made.of.forest.bytes_used, minor_faults()
        made.run(max(1, MILLION // m), m, False)
        faults = minor_faults() - faults
        rates = {k: trees.rounds_a_second(made.rounds_of(k, False), seconds, 5) * k for k in (m, 1, 16 * m) if 4 * k <= n}
        ticks = np.full(rounds + 1, np.iinfo(np.int64).max)
        made.run(len(ticks), m, False, EVICT, ticks)
        found = {"rounds": rounds, **trees.spread(trees.nanoseconds(ticks)[1:])}
        whole = {"bytes_an_entry": used / n, "resident_an_entry": held / n if before else None, "faults": faults, **found}
        for k, rate in rates.items():
            rows.append({"n": n, "m": k, "throughput": rate, **(whole if k == m else dict.fromkeys(whole))})
        del made
    return rows


def whole(rows: list[Row]) -> list[Row]:
    """Of the bulks of which everything was measured."""
    return [row for row in rows if row["p50_ns"] is not None]


def views(rows: list[Row]) -> list[View]:
    only = (("m", whole(rows)[0]["m"]),)
    return [
        View("bytes an entry", "m", "n", "bytes_an_entry", only, form="{:.1f}".format),
        View("bytes an entry, as the system sees it", "m", "n", "resident_an_entry", only, form="{:.1f}".format),
        View("million entries a second", "m", "n", "throughput", form=trees.millions),
        View("bulk evict, median", "m", "n", "p50_ns", only, form=trees.time),
        View("bulk evict, 99.999 % within", "m", "n", "p99_999_ns", only, form=trees.time),
    ]


def _memory(axes, rows: list[Row]) -> None:
    """From 0, with room above: the line is flat."""
    rows = whole(rows)
    axes.plot(
        [r["n"] for r in rows], [r["bytes_an_entry"] for r in rows], "o-", color="#0072b2", linewidth=1.3, markersize=4
    )
    axes.set_xscale("log", base=2)
    axes.set_ylim(0, 1.3 * max(r["bytes_an_entry"] for r in rows))


def plots(rows: list[Row]) -> list[Plot]:
    def panel(title: str, y: str, label: str, times: float = 1.0) -> Panel:
        return Panel(title, "n", y, x_label="window size n", y_label=label, x_log=2, times=times)

    return [
        Plot(
            [
                Panel("memory", x_label="window size n", y_label="bytes an entry", draw=_memory),
                Panel(
                    "throughput", "n", "throughput", "m", x_label="window size n", y_label="million entries a second", x_log=2,
                    times=1e-6, names={m: f"m = {m:,}" for m in values(rows, "m")},
                ),
                panel(f"median of a bulk evict, m = {whole(rows)[0]['m']:,}", "p50_ns", "nanoseconds"),
            ],
            "Section 7.3: large windows (b_fiba4, geomean)",
        )
    ]  # fmt: skip


def _megabytes(row: Row) -> str:
    return f"{row['bytes_an_entry'] * row['n'] / 1e6:,.0f} MB"


def claims(rows: list[Row]) -> list[Claim]:
    rate = {(row["n"], row["m"]): row["throughput"] for row in rows}
    rows = whole(rows)
    small = min(rows, key=lambda row: abs(row["n"] - 2**22))
    large = max(rows, key=lambda row: row["n"])
    apart = large["n"] > small["n"]
    shares = {
        m: r / rate[small["n"], m] for (n, m), r in sorted(rate.items()) if apart and n == large["n"] and (small["n"], m) in rate
    }
    divided = f"throughput at n = {large['n']:,} divided by that at n = {small['n']:,}: " + ", ".join(
        f"{r:.2f} for m = {m:,}" for m, r in shares.items()
    )
    least, most = (pick(shares, key=shares.__getitem__) if shares else 0 for pick in (min, max))
    slower = [m for m, r in shares.items() if 1 / r > 1.12]
    faster = [m for m, r in shares.items() if 1 / r < 0.95]
    each = [row["bytes_an_entry"] for row in rows]
    median = large["p50_ns"] / small["p50_ns"] - 1
    tail = large["p99_999_ns"] / small["p99_999_ns"]
    medians = {row["n"]: row["p50_ns"] for row in rows}
    return [
        claim(
            "memory for each entry stays the same, 64 to 70 bytes, whatever the window size",
            f"{min(each):.0f} to {max(each):.0f} bytes from n = {min(r['n'] for r in rows):,} to {large['n']:,}"
            + (f"; resident {large['resident_an_entry']:.0f} at the largest" if large["resident_an_entry"] else ""),
            [max(each) / min(each) < 1.1, max(each) <= 70],
            "Arenas grow in steps, which shows in small windows.",
        ),
        claim(
            "minor page faults for a million entries increase several times (657 for n = 4 million, 15,287 for 10^9)",
            f"{small['faults']:,} for n = {small['n']:,}, {large['faults']:,} for {large['n']:,}" if apart else "",
            [large["faults"] >= 2 * max(1, small["faults"])] if apart else [],
            reasons(
                (large["faults"] < 100, "Nodes lie in one array and are used again: a full window asks the system for next to "
                 "nothing, whatever its size."),
                (large["faults"] >= 100, "Not twice as many in the larger window."),
            ),
        ),
        claim(
            "throughput mirrors the trends of n = 4 million as the bulk size is varied",
            divided if shares else "",
            [shares[most] / shares[least] < 1.5] if len(shares) > 1 else [],
            reasons(
                (shares, f"Bulks of {least:,} lose most in the larger window, or gain least, and bulks of {most:,} the other way "
                 "round."),
                (least == 1, "Single evicts walk to the far end of memory for each entry, bulks once for many."),
            ),
        ),
        claim(
            "the throughput of the largest window (n = 10^9) is 1 to 1.12 times less than that of n = 4 million",
            divided if shares else "",
            [0.95 <= 1 / r <= 1.12 for r in shares.values()],
            reasons(
                (slower, f"Less by more than that for m = {', '.join(f'{m:,}' for m in slower)}. An entry is read again when it "
                 f"leaves, a window after it came: {_megabytes(small)} may still be near by then, {_megabytes(large)} are not."),
                (faster, f"More for m = {', '.join(f'{m:,}' for m in faster)}: no reason is known; the larger window is measured "
                 "last."),
            ),
        ),
        claim(
            "the median of a bulk evict goes up by about 7.5 %, the 99.999th percentile about doubles",
            f"from n = {small['n']:,} to {large['n']:,} the median by {median:+.1%}, the 99.999th percentile to {tail:.1f} times"
            if apart else "",
            [-0.1 < median < 0.25, 1 < tail < 4] if apart else [],
            reasons(
                (median >= 0.25, "What leaves comes from farther away. At the largest n half of the bulk evicts take up to "
                 f"{large['p50_ns'] * large['throughput'] / large['m'] / 1e9:.0%} of the time of a round of {large['m']:,}."),
                (median <= -0.1, "The median does not go up with the window: "
                 + ", ".join(f"{trees.time(ns)} at {n:,}" for n, ns in medians.items()) + "."),
                (not 1 < tail < 4, f"The 99.999th percentile of {large.get('rounds') or 'a few thousand'} rounds is the "
                 "longest one or two, and what the machine did in them."),
            ),
        ),
    ]  # fmt: skip


SECTION_7_3 = Suite(
    name="bulk-fiba-2023-section-7-3",
    source="bulk-fiba-2023 section 7.3",
    summary="memory, throughput and latency of very large windows",
    run=lambda quick, progress: measure(
        [2**14, 2**18, 2**20] if quick else windows(), 2**10, 2**9 if quick else 2**17, 0.02 if quick else 0.2, progress,
    ),
    tiny=lambda progress: measure([2**10, 2**12], 2**5, 16, 0.001, progress, "sum"),
    views=views,
    plots=plots,
    claims=claims,
    stands_in="The largest window is what half of the memory holds at 43 bytes an entry (2^28 of 24 GB), or less where less is "
    "free; the paper has 10^9. Bulks of 1, 1,024 and 16,384.",
)  # fmt: skip
