"""`rolling` and `as_of` on a batch DataFrame: one shuffle by key, then the local engine inside each task.

    rows --select what is needed and what rides along--> shuffle by key --> mapInArrow: sort, windows, results --> rows

A task works on all its keys at once. Windows without a key, and keys too large for one task, are cut by time instead
(giant.py). Nothing is computed before the result is asked for, but for example rows that the driver compiles with
(travel.py), a look at a sample of the keys where there are many rows (batch_skew.py), and giant keys' first pass.

as_of: queries and data are put one under the other, shuffled together, and split again in the task; only queries come out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from slidewise.engines.spark.batch_keys import STAND_IN, needs_stand_in, same_key, shuffled
from slidewise.engines.spark.batch_settings import Settings, settings_of
from slidewise.engines.spark.batch_skew import giant_keys
from slidewise.engines.spark.batch_tasks import Partitions
from slidewise.engines.spark.batch_types import (
    arrow_type,
    carried,
    costs,
    inner_name,
    is_unknown,
    quoted,
    result_schema,
    spark_type,
)
from slidewise.engines.spark.batch_worker import ITSELF, Job, try_on, try_out
from slidewise.engines.spark.giant import giant_results
from slidewise.engines.spark.travel import Parcel, prepared, quietly
from slidewise.errors import InputError, InputTypeError, UnsupportedError
from slidewise.planner.plan import Plan, make_plan
from slidewise.planner.request import Request

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

_LOOK_AT = 200
"""Rows of the data that are looked at where the type of a result does not follow from the types of its inputs."""


def rolling(df: DataFrame, asked: Request) -> DataFrame:
    """Aggregates over the window of each row (or key, or boundary)."""
    return rolling_road(df, asked).run()


def as_of(queries: DataFrame, df: DataFrame, asked: Request, *, query_time: str, query_by: tuple[str, ...]) -> DataFrame:
    """The queries with aggregates over windows of `df` that end at each query's key and time."""
    return as_of_road(queries, df, asked, query_time, query_by).run()


def explain(df: DataFrame, asked: Request, queries: DataFrame | None, query_time: str, query_by: tuple[str, ...]):
    """The road and the plan in words."""
    from slidewise.engines.spark.batch_explain import explained

    return explained(rolling_road(df, asked) if queries is None else as_of_road(queries, df, asked, query_time, query_by))


class Named:
    """The columns of a DataFrame by their places: names may be there twice, or be the same to Spark but for case."""

    def __init__(self, df: DataFrame):
        self.df = df.toDF(*map(inner_name, range(len(df.columns))))
        both = [carried(f.dataType, f.name) for f in df.schema]
        self.kinds = [there for there, _ in both]
        self.own = {place: back for place, (there, back) in enumerate(both) if there is not back}
        """Columns that cross as another type, and their own."""

    def column(self, place: int) -> Column:
        """As it crosses."""
        column = quoted(inner_name(place))
        return column.cast(self.kinds[place]) if place in self.own else column


@dataclass
class Shipped:
    """Columns on their way to the tasks, and their places there: inside they are named by place."""

    df: DataFrame
    kinds: list[DataType]
    places: dict[str, int]
    zone: str
    stand_ins: dict[str, int] = field(default_factory=dict)
    """Keys that something else stands for, and their own places."""
    query: int | None = None
    """as_of: the place of the column that is true for queries."""
    own: dict[int, DataType] = field(default_factory=dict)
    """Columns that cross as another type, and their own."""

    @cached_property
    def costs(self) -> str:
        """What Spark thinks of the data's size: asked once, as it plans the query for it."""
        return costs(self.df)

    @staticmethod
    def of(df: DataFrame, columns: list[str] | None = None) -> Shipped:
        """All columns (names may be there twice), or those named."""
        shown = Named(df)
        places = list(range(len(df.columns))) if columns is None else [df.columns.index(name) for name in columns]
        kinds = [shown.kinds[place] for place in places]
        renamed = shown.df if columns is None and not shown.own else shown.df.select(
            *[shown.column(place).alias(inner_name(k)) for k, place in enumerate(places)])
        named = {df.columns[place]: k for k, place in enumerate(places)}
        own = {k: shown.own[place] for k, place in enumerate(places) if place in shown.own}
        return Shipped(renamed, kinds, named, df.sparkSession.conf.get("spark.sql.session.timeZone"), own=own)

    def add(self, name: str, column: Column, kind: DataType) -> None:
        self.places[name] = len(self.kinds)
        self.df = self.df.withColumn(inner_name(len(self.kinds)), column)
        self.kinds.append(kind)

    def keys_of(self, by: tuple[str, ...]) -> tuple[str, ...]:
        """The key columns as a plan compares them; stand-ins are added where Arrow would compare otherwise than Spark."""
        from pyspark.sql.types import StringType

        found = []
        for name in by:
            place = self.places[name]
            if needs_stand_in(self.kinds[place], name):
                self.add(STAND_IN + name, same_key(quoted(inner_name(place)), self.kinds[place]), StringType())
                self.stand_ins[STAND_IN + name] = place
            found.append(STAND_IN + name if STAND_IN + name in self.stand_ins else name)
        return tuple(found)

    def kind(self, name: str) -> DataType:
        return self.kinds[self.places[name]]

    def types(self, request: Request) -> pa.Schema:
        """Of what the plan needs. (A key may cross as another type, what is aggregated may not.)"""
        for name in read_by(request):
            if self.places[name] in self.own:
                arrow_type(self.own[self.places[name]], self.zone, name)
        return pa.schema([pa.field(name, arrow_type(self.kind(name), self.zone, name)) for name in request.needed])

    def by_key(self, keys: tuple[str, ...]) -> DataFrame:
        """The rows of each key in one partition."""
        columns = [shuffled(quoted(inner_name(self.places[name])), self.kind(name)) for name in keys]
        return self.df.repartition(*columns) if columns else self.df.repartition(1)


@dataclass
class Road:
    """From the rows that are shipped to the rows that come back."""

    shipped: Shipped
    job: Job
    names: list[str]
    kinds: list[DataType]
    """Names and Spark types of the columns that come back."""
    settings: Settings
    own: dict[int, DataType] = field(default_factory=dict)
    """Columns that come back as another type than their own, and that one."""

    def run(self) -> DataFrame:
        giants = giant_keys(self)
        if not giants:
            return self.in_whole_keys(self.shipped)
        found = giant_results(self, giants)
        if giants[0].is_it is None:
            return found
        others = ~reduce(or_, [giant.is_it for giant in giants])
        rest = self.in_whole_keys(replace(self.shipped, df=self.shipped.df.where(others)))
        return found.unionAll(rest)  # Spark starts tasks in this order: the longest first

    def in_whole_keys(self, shipped: Shipped) -> DataFrame:
        """Each key in one task."""
        return self.finished(shipped.by_key(self.job.plan.request.by), Partitions(Parcel(self.job)))

    def finished(self, df: DataFrame, task: Any) -> DataFrame:
        # Spark goes by position: to rename columns afterwards would cost it one more copy of every row
        plain = len({name.lower() for name in self.names}) == len(self.names)
        names = self.names if plain else self.job.names
        found = df.mapInArrow(task, result_schema(list(zip(names, self.kinds))))
        if self.own:
            columns = [(quoted(name), self.own.get(k)) for k, name in enumerate(names)]
            found = found.select(*[c if kind is None else c.cast(kind).alias(n) for n, (c, kind) in zip(names, columns)])
        return found if plain else found.toDF(*self.names)


def rolling_road(df: DataFrame, asked: Request) -> Road:
    asked.check_columns(df.columns)
    event = asked.emit == "event"
    kept = list(df.columns) if event else [*asked.by, asked.time]
    _check_case(df, asked, kept)
    shipped = Shipped.of(df, None if event else list(asked.needed))
    width = len(shipped.kinds)
    request = deterministic(replace(asked, by=shipped.keys_of(asked.by)))
    types = shipped.types(request)
    plan = make_plan(request, types)
    found = _answered(plan, types, shipped)
    listed = () if event else (*request.by, request.time)
    needed = {name: shipped.places[name] for name in request.needed}
    for name in set(listed) & set(shipped.stand_ins):
        needed[ITSELF + name] = shipped.stand_ins[name]
        types = types.append(pa.field(ITSELF + name, found[name]))
    settings = settings_of(df.sparkSession)
    job = Job(
        plan=plan,
        needed=needed,
        types=types,
        held_bytes=settings.heldBytes,
        chunk_rows=settings.chunkRows,
        riding=tuple(range(width)) if event else (),
        results=tuple((name, found[name]) for name in (*listed, *(output.column for output in request.outputs))),
    )
    kinds = [*shipped.kinds[:width]] if event else [shipped.kind(name) for name in kept]
    kinds += _result_kinds(request, shipped, found)
    places = range(width) if event else [shipped.places[name] for name in kept]
    own = {k: shipped.own[place] for k, place in enumerate(places) if place in shipped.own}
    return Road(shipped, job, [*kept, *(o.column for o in request.outputs)], kinds, settings, own)


def as_of_road(queries: DataFrame, df: DataFrame, asked: Request, query_time: str, query_by: tuple[str, ...]) -> Road:
    for name in (query_time, *query_by):
        if queries.columns.count(name) > 1:
            raise InputError(f"the queries have {queries.columns.count(name)} columns named {name!r}; rename all but one")
        if name not in queries.columns:
            raise InputError(f"no column {name!r} in the queries; they have {', '.join(map(repr, queries.columns))}")
    asked.check_columns(df.columns, kept=queries.columns)
    _check_case(df, asked, queries.columns)
    common = _common_time(queries.schema[query_time].dataType, df.schema[asked.time].dataType, query_time)
    shipped, asked = one_under_the_other(queries, df, asked, query_time, query_by, common)
    width = len(queries.columns)
    request = deterministic(replace(asked, by=shipped.keys_of(asked.by)))
    types = shipped.types(request)
    plan = make_plan(request, types)
    found = _answered(plan, types, shipped)
    settings = settings_of(df.sparkSession)
    job = Job(
        plan=plan,
        needed={name: shipped.places[name] for name in request.needed},
        types=types,
        held_bytes=settings.heldBytes,
        chunk_rows=settings.chunkRows,
        riding=tuple(range(width)),
        results=tuple((output.column, found[output.column]) for output in request.outputs),
        query=width,
    )
    kinds = shipped.kinds[:width] + _result_kinds(request, shipped, found)
    own = {place: kind for place, kind in shipped.own.items() if place < width}
    return Road(shipped, job, [*queries.columns, *(o.column for o in request.outputs)], kinds, settings, own)


def one_under_the_other(
    queries: DataFrame, df: DataFrame, asked: Request, query_time: str, query_by: tuple[str, ...], common: DataType
) -> tuple[Shipped, Request]:
    """Queries and data as one: the queries' columns, whether it is a query, then what is needed of the data, with the key and time
    of both in the same columns."""
    from pyspark.sql import functions as F

    asking, known = Named(queries), Named(df)
    upper_place, lower_place = ({name: k for k, name in enumerate(each.columns)} for each in (queries, df))
    time = asked.time
    if df.schema[time].dataType != common:  # aggregates may read the time as it is: the one to compare by stands beside it
        asked = replace(asked, time=f"{time} as {common.simpleString()}")
    shared = dict(zip(asked.by, query_by))
    keys = {name: _common_key(queries.schema[other].dataType, df.schema[name].dataType, other) for name, other in shared.items()}
    width = len(queries.columns)
    upper = [*map(asking.column, range(width)), F.lit(True)]
    lower = [*[F.lit(None).cast(kind) for kind in asking.kinds], F.lit(False)]
    own = dict(asking.own)
    for name in asked.needed:
        if name == asked.time:
            upper.append(asking.column(upper_place[query_time]).cast(common))
            lower.append(known.column(lower_place[time]).cast(common))
            continue
        place = lower_place[name]
        if place in known.own:
            own[len(upper)] = known.own[place]
        mine = asking.column(upper_place[shared[name]]) if name in shared else F.lit(None).cast(known.kinds[place])
        both_as = keys.get(name)
        upper.append(mine if both_as is None else mine.cast(both_as))
        lower.append(known.column(place) if both_as is None else known.column(place).cast(both_as))
    names = [inner_name(k) for k in range(len(lower))]
    both = asking.df.select(*[c.alias(n) for c, n in zip(upper, names)]).unionAll(
        known.df.select(*[c.alias(n) for c, n in zip(lower, names)])
    )
    kinds = [f.dataType for f in both.schema]
    places = {name: width + 1 + k for k, name in enumerate(asked.needed)}
    zone = df.sparkSession.conf.get("spark.sql.session.timeZone")
    return Shipped(both, kinds, places, zone, query=width, own=own), asked


def deterministic(request: Request) -> Request:
    """Rows of one key and time have no order of their own on Spark: they get that of the columns that are read, after `order`.

    Left out where no result could tell: every window holds all of them or none, and every operator is exact and commutative."""
    plain = all(bound.operator.commutative and bound.operator.exact for bound in request.aggs.values())
    if plain and (request.as_of or request.ties == "peers") and not any(w.by_position for w in request.windows.values()):
        return request
    keep = [name for name in dict.fromkeys(read_by(request)) if name not in (request.time, *request.by)]
    return replace(request, order=tuple(keep))


def read_by(request: Request) -> list[str]:
    """The columns that are read for their values: all that are needed, but keys only if something else reads them too."""
    names = list(request.order)
    for bound in request.aggs.values():
        names += bound.needed
    for window in request.windows.values():
        names += window.needed
    return [*names, request.time]


# ---- the types of results ------------------------------------------------------------------------------------------------


def _answered(plan: Plan, types: pa.Schema, shipped: Shipped) -> dict[str, pa.DataType]:
    """The Arrow types of the plan's answer, by example; everything the plan needs is compiled on the way."""
    prepared(plan, lambda: try_out(plan, types))
    found: dict[str, pa.DataType] = {}
    for table in try_out(plan, types, only_one=True):
        found = {f.name: f.type for f in table.schema}
    if not found or any(is_unknown(found[o.column]) for o in plan.request.outputs):
        with quietly():
            found = {f.name: f.type for f in try_on(plan, _first_rows(shipped, types)).schema}
    for output in plan.request.outputs:
        if is_unknown(found[output.column]):
            name = plan.request.aggs[output.aggregate].operator.name
            raise UnsupportedError(
                f"Spark must know the type of {output.column!r} beforehand, and neither the operator {name!r} nor the "
                f"first {_LOOK_AT} rows tell it; let its functions be compiled, or let `lower` give numbers or text"
            )
        kind = spark_type(found[output.column], output.column)
        found[output.column] = arrow_type(kind, shipped.zone, output.column)
    for name in (plan.request.time, *plan.request.by):
        found[name] = types.field(name).type
    for stand_in, place in shipped.stand_ins.items():
        found[stand_in] = arrow_type(shipped.kinds[place], shipped.zone, stand_in)
    return found


def _first_rows(shipped: Shipped, types: pa.Schema) -> pa.Table:
    """Some rows of the data: the type of what a user's interpreted operator gives is known only from values."""
    from slidewise.engines.spark.batch_types import fitted, to_arrow

    rows = shipped.df if shipped.query is None else shipped.df.where(~quoted(inner_name(shipped.query)))
    table = to_arrow(rows.select(*[inner_name(shipped.places[name]) for name in types.names]).limit(_LOOK_AT))
    return pa.table([fitted(column, f.type) for column, f in zip(table.columns, types)], schema=types)


def _result_kinds(request: Request, shipped: Shipped, found: dict[str, pa.DataType]) -> list[DataType]:
    """Spark's types of the results; what keeps its input's type keeps it to the letter (collation, length)."""
    kinds = []
    for output in request.outputs:
        bound = request.aggs[output.aggregate]
        like = bound.operator.result_like
        kind = None if like is None else shipped.kind(bound.columns[like])
        plain = spark_type(found[output.column], output.column)
        # there and back, so that what Arrow does not tell (which parts are never null) makes no difference
        same = kind is not None and spark_type(arrow_type(kind, shipped.zone, output.column), output.column) == plain
        kinds.append(kind if same else plain)
    return kinds


# ---- complaints ----------------------------------------------------------------------------------------------------------


def _check_case(df: DataFrame, asked: Request, kept: list[str]) -> None:
    """Spark does not tell `Total` from `total`."""
    if str(df.sparkSession.conf.get("spark.sql.caseSensitive", "false")).lower() == "true":
        return
    lower = {name.lower(): f"the data's {name!r}" for name in kept}
    for output in asked.outputs:
        if output.column.lower() in lower:
            raise InputError(f"the result column {output.column!r} and {lower[output.column.lower()]} are the same to "
                             f"Spark; rename the aggregate {output.aggregate!r} or the window {output.window!r}")
        lower[output.column.lower()] = f"the result {output.column!r}"


def _common_time(asking: DataType, known: DataType, name: str) -> DataType:
    """A type that holds the times of both exactly: nothing is cut to a date, an int or a float."""
    from pyspark.sql import types as T

    if asking == known:
        return known
    common = _common_number(asking, known)
    if common is not None:
        return common
    for instant in (T.TimestampType, T.TimestampNTZType):
        if all(isinstance(kind, (T.DateType, instant)) for kind in (asking, known)):
            return instant()
    raise _no_common("time", asking, known, name)


def _common_key(asking: DataType, known: DataType, name: str) -> DataType | None:
    """A type that holds the keys of both exactly: keys that differ do not become one. None where they are of one type already."""
    if asking.simpleString() == known.simpleString():
        return None
    common = _common_number(asking, known) or _common_decimal(asking, known)
    if common is None:
        raise _no_common("key", asking, known, name)
    return common


def _common_number(asking: DataType, known: DataType) -> DataType | None:
    from pyspark.sql import types as T

    small = (T.ByteType, T.ShortType, T.IntegerType, T.FloatType, T.DoubleType)
    for family, common in ((T.IntegralType, T.LongType()), (small, T.DoubleType())):
        if all(isinstance(kind, family) for kind in (asking, known)):
            return common
    return None


def _common_decimal(asking: DataType, known: DataType) -> DataType | None:
    """Of decimals, and of whole numbers beside them."""
    from pyspark.sql import types as T

    digits: dict[type, int] = {T.ByteType: 3, T.ShortType: 5, T.IntegerType: 10, T.LongType: 19}
    sizes = [(kind.precision - kind.scale, kind.scale) if isinstance(kind, T.DecimalType) else (digits.get(type(kind), 39), 0)
             for kind in (asking, known)]  # fmt: skip
    before, behind = (max(each) for each in zip(*sizes))
    return T.DecimalType(before + behind, behind) if before + behind <= 38 else None


def _no_common(what: str, asking: DataType, known: DataType, name: str) -> InputTypeError:
    return InputTypeError(f"the queries' {what} {name!r} is {asking.simpleString()}, the data's {known.simpleString()}: no type "
                          "holds both exactly; cast one of them")
