"""The latest revision by id, where the sink can: a database table through JDBC, a Delta or Iceberg table through MERGE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slidewise.pipeline import schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def merge_jdbc(rows: DataFrame, sink: schema.JdbcSink, options: dict[str, str], keys: list[str]) -> None:
    """Replace rows by key: into a table beside the target first, from there in one transaction of two plain statements."""
    spark = rows.sparkSession
    staging = beside(sink.table)
    rows.write.format("jdbc").mode("overwrite").options(**{**options, "dbtable": staging}).save()
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


def jdbc_statements(table: str, staging: str, columns: list[str], keys: list[str], quote: Any) -> tuple[str, str]:
    same = " AND ".join(f"{staging}.{quote(key)} = {table}.{quote(key)}" for key in keys)
    listed = ", ".join(quote(column) for column in columns)
    return (
        f"DELETE FROM {table} WHERE EXISTS (SELECT 1 FROM {staging} WHERE {same})",
        f"INSERT INTO {table} ({listed}) SELECT {listed} FROM {staging}",
    )


def _connect(spark: Any, dialect: Any, options: dict[str, str]) -> Any:
    """As Spark connects itself: it knows the drivers of added packages, which Java's own registry does not."""
    jvm = spark._jvm
    known = jvm.org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions(jvm.PythonUtils.toScalaMap(options))
    return dialect.createConnectionFactory(known).apply(-1)


def merge_table(rows: DataFrame, sink: schema.TableSink, keys: list[str]) -> None:
    view = f"slidewise_{sink.table.replace('.', '_').replace('`', '')}"
    rows.createOrReplaceTempView(view)
    spark = rows.sparkSession
    for statement in table_statements(sink.table, str(sink.provider), view, rows, keys):
        spark.sql(statement)


def table_statements(table: str, provider: str, view: str, rows: Any, keys: list[str]) -> tuple[str, str]:
    columns = ", ".join(f"{_quoted(field.name)} {field.dataType.simpleString()}" for field in rows.schema)
    same = " AND ".join(f"target.{_quoted(key)} <=> source.{_quoted(key)}" for key in keys)
    return (
        f"CREATE TABLE IF NOT EXISTS {table} ({columns}) USING {provider}",
        f"MERGE INTO {table} AS target USING {view} AS source ON {same} "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    )


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
