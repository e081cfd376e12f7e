"""The latest revision by id, where the sink can: a database table through JDBC, a Delta or Iceberg table through MERGE.

A late event that was handed out apart has no results. It comes in where its id has no row, and never takes the place of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slidewise.pipeline import schema
from slidewise.pipeline.latest import LATE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

APART = "slidewise_apart"
"""In the table beside the target: 1 for an event that was handed out apart, 0 for a result."""


def merge_jdbc(rows: DataFrame, sink: schema.JdbcSink, options: dict[str, str], keys: list[str]) -> None:
    """Replace rows by key: into a table beside the target first, from there in one transaction of a few plain statements."""
    from pyspark.sql import functions as F

    spark = rows.sparkSession
    staging = beside(sink.table)
    # A number, because databases do not agree on what a truth value is.
    late = F.coalesce(F.col(LATE).cast("int"), F.lit(0)) if LATE in rows.columns else F.lit(0)
    staged = rows.withColumn(APART, late)
    staged.write.format("jdbc").mode("overwrite").options(**{**options, "dbtable": staging}).save()
    # Makes the table if there is none: of no rows, so that it costs nothing if there is one.
    spark.createDataFrame([], rows.schema).write.format("jdbc").mode("append").options(**options).save()
    dialect = spark._jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(sink.url)
    statements = jdbc_statements(sink.table, staging, rows.columns, keys, dialect.quoteIdentifier)
    connection = _connect(spark, dialect, options)
    try:
        connection.setAutoCommit(False)
        statement = connection.createStatement()
        for text in statements:
            statement.executeUpdate(text)
        connection.commit()
        statement.executeUpdate(f"DROP TABLE {staging}")
        connection.commit()
    except Exception:
        connection.rollback()
        raise
    finally:
        connection.close()


def beside(table: str) -> str:
    """The name of another table in the same place; a name in quotes stays in them."""
    last = table[-1] if table[-1] in "\"`]" else ""
    return f"{table.removesuffix(last)}__slidewise{last}"


def jdbc_statements(table: str, staging: str, columns: list[str], keys: list[str], quote: Any) -> tuple[str, ...]:
    same = " AND ".join(f"{staging}.{quote(key)} = {table}.{quote(key)}" for key in keys) or "1 = 1"
    listed = ", ".join(quote(column) for column in columns)
    apart = f"{staging}.{quote(APART)}"
    return (
        f"DELETE FROM {table} WHERE EXISTS (SELECT 1 FROM {staging} WHERE {same} AND {apart} = 0)",
        f"INSERT INTO {table} ({listed}) SELECT {listed} FROM {staging} WHERE {apart} = 0",
        f"INSERT INTO {table} ({listed}) SELECT {listed} FROM {staging} WHERE {apart} = 1 "
        f"AND NOT EXISTS (SELECT 1 FROM {table} WHERE {same})",
    )


def _connect(spark: Any, dialect: Any, options: dict[str, str]) -> Any:
    """As Spark connects itself: it knows the drivers of added packages, which Java's own registry does not."""
    jvm = spark._jvm
    known = jvm.org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions(jvm.PythonUtils.toScalaMap(options))
    return dialect.createConnectionFactory(known).apply(-1)


def merge_table(rows: DataFrame, sink: schema.TableSink, keys: list[str]) -> None:
    view = f"slidewise_{sink.table.replace('.', '_').replace('`', '')}"
    kept = rows.persist()  # MERGE reads its source more than once
    try:
        kept.createOrReplaceTempView(view)
        for statement in table_statements(sink.table, str(sink.provider), view, rows, keys):
            rows.sparkSession.sql(statement)
    finally:
        kept.unpersist()


def table_statements(table: str, provider: str, view: str, rows: Any, keys: list[str]) -> tuple[str, str]:
    columns = ", ".join(f"{_quoted(field.name)} {field.dataType.simpleString()}" for field in rows.schema)
    same = " AND ".join(f"target.{_quoted(key)} <=> source.{_quoted(key)}" for key in keys) or "true"
    result = f" AND NOT coalesce(source.{_quoted(LATE)}, false)" if LATE in rows.columns else ""
    return (
        f"CREATE TABLE IF NOT EXISTS {table} ({columns}) USING {provider}",
        f"MERGE INTO {table} AS target USING {view} AS source ON {same} "
        f"WHEN MATCHED{result} THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    )


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
