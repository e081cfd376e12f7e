"""The verdicts of `bench rolling`: every target of its own, by its worst figure, and a miss is called one."""

from slidewise.bench.rolling import LEAST, MOST, verdicts


def rows(figures):
    return [
        {"experiment": experiment, "what": what, "rows": n, "window": "w", "system": system, "times_slidewise": figure}
        for (experiment, what, system, n), figure in figures.items()
    ]


def test_the_worst_figure_decides():
    told = verdicts(
        rows(
            {
                ("one key", "sum", "pandas", 10): 5.0,
                ("one key", "max", "pandas", 10): 1.9,
                ("one key", "std", "pandas", 10): 1.2,
                ("one key", "sum", "pandas", 100): 2.5,
            }
        )
    )
    assert told == [
        "one key, sum mean min max count, pandas, 10 rows: at least 2 wanted, 1.90 found (missed)",
        "one key, sum mean min max count, pandas, 100 rows: at least 2 wanted, 2.50 found",
        "one key, std, pandas, 10 rows: at least 1 wanted, 1.20 found",
    ]


def test_every_target_can_hold_and_be_missed():
    for wanted, better in ((LEAST, 1.1), (MOST, 0.9)):
        for (experiment, what, system), bound in wanted.items():
            one = what if experiment != "one key" else what.split()[0]
            for factor, missed in ((better, False), (1 / better, True)):
                (line,) = verdicts(rows({(experiment, one, system, 7): bound * factor}))
                assert line.endswith("(missed)") is missed, line
