"""Sensor monitoring with M4 down-sampling: of each minute the first, last, least and greatest value.

That is all that a line chart of one pixel a minute can show, so the picture stays the same, peaks included, with a fraction of
the points. An average would have lost the spike below; M4 cannot.

    python examples/sensor_m4.py
"""

import math
import random

import pyarrow as pa

import slidewise as sw


def readings(seconds: int = 3600, seed: int = 3) -> pa.Table:
    """An hour of a boiler and a pump, a reading a second each, in no particular order."""
    chance = random.Random(seed)
    rows = [
        {"t": t, "sensor": name, "celsius": base + 5 * math.sin(t / 300) + chance.gauss(0, 0.2)}
        for name, base in (("boiler", 20.0), ("pump", 45.0))
        for t in range(1, seconds + 1)  # a minute is (0, 60]: its end belongs to it
    ]
    rows[1234]["celsius"] = 95.0  # the boiler, for a single second
    chance.shuffle(rows)
    return pa.Table.from_pylist(rows)


def main() -> None:
    data = readings()
    minutes = sw.rolling(
        data,
        time="t",
        by="sensor",
        windows={"minute": sw.tumbling(60)},
        aggs={"shape": sw.m4("celsius"), "mean": sw.mean("celsius")},
        emit="slide",
    )
    print(f"{data.num_rows:,} readings of two sensors -> {minutes.num_rows} rows, one for each minute and sensor")
    assert minutes.num_rows == 2 * 60
    boiler = [row for row in minutes.to_pylist() if row["sensor"] == "boiler"]
    alarm = [row for row in boiler if row["shape_minute"]["max"] > 60]
    shape = {name: round(value, 1) for name, value in alarm[0]["shape_minute"].items()}
    print(f"the spike is in the boiler's minute up to t = {alarm[0]['t']}: {shape}")
    print(f"its mean alone would not have told: {alarm[0]['mean_minute']:.1f}")
    assert [row["t"] for row in alarm] == [1260]
    assert alarm[0]["shape_minute"]["max"] == 95.0
    assert max(row["mean_minute"] for row in boiler) < 30, "the mean never showed it"


if __name__ == "__main__":
    main()
