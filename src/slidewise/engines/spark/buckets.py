"""Buckets: which group of keys a key belongs to, and which label stands for it in the shuffle.

The stateful operator is grouped by bucket, not by key: one call then serves thousands of keys (a state call costs 50-350
microseconds, whatever it carries). A key's bucket must follow Spark's own equality of keys (0.0 and -0.0, NaN, null), or
a key would be split over two buckets; so it is computed by Spark's hash expression, on normalised columns.

    key columns --normal--> xxhash64 --pmod B--> number of the bucket --LABELS--> label --Spark's shuffle--> partition

Hashing the numbers 0..B-1 onto P partitions leaves holes (8 on 8 fills 5). The labels are chosen so that Spark's shuffle
hash of the i-th label is i modulo B: where P divides B, every partition gets exactly B / P buckets. Labels depend on B
alone, and B is frozen in the checkpoint.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from slidewise.engines.spark.batch_keys import collation, plain_text
from slidewise.errors import InputError, UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BUCKETS_PER_PARTITION = 4
_MOST_BUCKETS = 1 << 16


def default_buckets(partitions: int) -> int:
    """How many buckets for this many shuffle partitions: a few for each task, so that a large one can be balanced."""
    return max(1, partitions) * BUCKETS_PER_PARTITION


@functools.lru_cache(maxsize=8)
def labels(buckets: int) -> tuple[int, ...]:
    """The label of each bucket: the smallest numbers whose shuffle hash leaves the bucket's number modulo `buckets`."""
    if not 1 <= buckets <= _MOST_BUCKETS:
        raise InputError(f"buckets must be between 1 and {_MOST_BUCKETS}, not {buckets}")
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < buckets:
        found.setdefault(shuffle_hash(candidate) % buckets, candidate)
        candidate += 1
    return tuple(found[i] for i in range(buckets))


def partition_of(label: int, partitions: int) -> int:
    """Where Spark's shuffle sends a label."""
    return shuffle_hash(label) % partitions


def shuffle_hash(value: int) -> int:
    """Spark's hash of one int column: MurmurHash3 (32 bits, public domain), seed 42, as a signed number."""
    mask = 0xFFFFFFFF
    k = (value & mask) * 0xCC9E2D51 & mask
    k = (k << 15 | k >> 17) & mask
    h = 42 ^ (k * 0x1B873593 & mask)
    h = (h << 13 | h >> 19) & mask
    h = (h * 5 + 0xE6546B64 & mask) ^ 4
    h = (h ^ h >> 16) * 0x85EBCA6B & mask
    h = (h ^ h >> 13) * 0xC2B2AE35 & mask
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def label_column(df: DataFrame, by: tuple[str, ...], buckets: int) -> Column:
    """The label of each row's bucket, as a Spark expression over (normalised) key columns. Without a key: one bucket."""
    from pyspark.sql import functions as F

    known = labels(buckets)
    if not by or buckets == 1:
        return F.lit(known[0])
    number = F.pmod(F.xxhash64(*[df[quoted(name)] for name in by]), F.lit(buckets)).cast("int")
    return F.element_at(F.array(*map(F.lit, known)), number + 1)


def normal_key(df: DataFrame, name: str) -> Column | None:
    """An expression equal exactly where Spark's grouping holds two keys equal; None where the column itself is one.

    Arrow compares bits and bytes: -0.0 is not 0.0 there, and "a" is not "A" whatever the collation."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, DoubleType, FloatType, MapType, StringType, StructType

    kind = df.schema[name].dataType
    column = df[quoted(name)]
    if isinstance(kind, (FloatType, DoubleType)):
        # One zero and one NaN: adding 0.0 turns -0.0 into 0.0, and any NaN is written as the same one.
        return F.when(F.isnan(column), F.lit(float("nan")).cast(kind)).otherwise(column + F.lit(0.0).cast(kind))
    if isinstance(kind, StringType) and collation(kind) != "UTF8_BINARY":
        plain = plain_text(column, collation(kind))
        if plain is not None:
            return plain
        raise UnsupportedError(
            f"the key {name!r} has the collation {collation(kind)}, whose equality cannot be reproduced outside Spark; "
            f"make a column of plain strings that are equal where these are, and use it as the key"
        )
    if isinstance(kind, (ArrayType, MapType, StructType)):
        raise UnsupportedError(
            f"the key {name!r} is a {kind.simpleString()}; take its parts as keys of their own (or to_json of it)"
        )
    return None


def quoted(name: str) -> str:
    """A column's name as Spark's parser wants it: dots and spaces are part of the name."""
    return "`" + name.replace("`", "``") + "`"
