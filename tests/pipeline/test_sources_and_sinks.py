"""Each kind of source and sink, for real: a socket on this machine, an embedded database, a warehouse in a folder.

Kafka and Delta are packages of their own: what is asked of them stands in `test_packages.py`. Results are tested elsewhere."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from tests.cli.test_commands import slidewise
from tests.pipeline.support import JOB, START, events, job
from tests.pipeline.test_runs import REPLAY, RESULTS, same, start

import slidewise as sw
from slidewise.errors import RunError
from slidewise.pipeline import Summary, latest, load, run

COLUMNS = 'schema = { id = "long", ts = "timestamp", card = "string", amount = "long", paid = "boolean" }'


@pytest.fixture(scope="module")
def expected() -> pa.Table:
    aggs = {"payments": sw.count(), "total": sw.sum("amount"), "largest": sw.argmax("amount", "id", where="paid")}
    return sw.rolling(events(), time="ts", by="card", windows=["1h", sw.rows(5)], aggs=aggs, order="id").sort_by("id")


def with_source(source: str) -> str:
    return JOB.replace(JOB[JOB.index("[source]") : JOB.index("[stream]")], f"[source]\n{source}\n\n")


# ---- sources ------------------------------------------------------------------------------------------------------------


@contextmanager
def served(lines: list[str]) -> Iterator[int]:
    """A socket that gives everyone who connects these lines, and then stays open; its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        done, guests = threading.Event(), []

        def serve() -> None:
            while not done.is_set():
                try:
                    guest, _ = server.accept()
                except TimeoutError:
                    continue
                guests.append(guest)
                guest.sendall("".join(f"{line}\n" for line in lines).encode())

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            done.set()
            thread.join()
            for guest in guests:
                guest.close()


def as_lines(table: pa.Table, kind: str) -> list[str]:
    rows = table.select(["id", "ts", "card", "amount", "paid"]).sort_by("id").to_pylist()
    if kind == "json":
        return [json.dumps(row, default=lambda moment: moment.isoformat()) for row in rows]
    return [",".join(str(value) for value in row.values()).replace("True", "true") for row in rows]


def until_read(folder: Path, text: str, rows: int, *settings: str) -> Summary:
    """Run a stream that has no end of its own until it has read so many rows."""
    stop, read = threading.Event(), []

    def on_step(step) -> None:
        read.append(step.rows)
        if sum(read) >= rows:
            stop.set()

    guard = threading.Timer(300, stop.set)
    guard.start()
    try:
        checked = load(job(folder, text), ['order="id"', "mode=stream", "stream.trigger=1s", *settings])
        return run(checked, on_step=on_step, stop=stop)
    finally:
        guard.cancel()


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_a_socket(spark, tmp_path: Path, expected: pa.Table, kind: str) -> None:
    with served(as_lines(events(), kind)) as port:
        text = with_source(f'format = "socket"\nhost = "127.0.0.1"\nport = {port}\nvalue = "{kind}"\n{COLUMNS}')
        summary = until_read(tmp_path, text, 200, "sink.merge=true")
    assert (summary.state, summary.rows) == ("stopped", 200)
    same(summary.table, expected)


def test_a_socket_of_plain_lines(spark, tmp_path: Path) -> None:
    """Without columns a line is text, and its time is when it came."""
    with served(["a", "b", "a"]) as port:
        text = f"""\
time = "timestamp"
by = "value"
windows = ["1h"]
aggregates = {{ lines = "count()" }}
source = {{ format = "socket", host = "127.0.0.1", port = {port}, value = "text" }}
stream = {{ watermark = "1m", results = "eager" }}
emit = "latest"
sink = {{ format = "memory", merge = true }}
"""
        summary = until_read(tmp_path, text, 3, "order=[]", "stream.trigger=asap")
    assert dict(zip(summary.table["value"].to_pylist(), summary.table["lines_1h"].to_pylist())) == {"a": 2, "b": 1}


def test_a_socket_nobody_listens_at(spark, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    text = with_source(f'format = "socket"\nhost = "127.0.0.1"\nport = {port}\n{COLUMNS}')
    with pytest.raises(RunError, match="Connection refused"):
        until_read(tmp_path, text, 1)


@pytest.mark.parametrize("kind", ["csv", "json"])
@pytest.mark.parametrize("mode", ["batch", "stream"])
def test_text_files(spark, tmp_path: Path, expected: pa.Table, kind: str, mode: str) -> None:
    """Spark reads what it is told of the columns; a batch with `overwrite`, a stream one file a micro-batch."""
    (tmp_path / "in").mkdir()
    lines = as_lines(events(), kind)
    for number, part in enumerate((lines[:120], lines[120:])):
        header = ["id,ts,card,amount,paid"] if kind == "csv" else []
        file = tmp_path / "in" / f"{number}.{kind}"
        file.write_text("\n".join([*header, *part]) + "\n", encoding="utf-8")
        os.utime(file, (1_700_000_000 + number,) * 2)  # Spark takes the older one first
    text = with_source(f'format = "{kind}"\npath = "in"\nmax_files = 1\n{COLUMNS}')
    summary = start(tmp_path, f"mode={mode}", f"sink.merge={str(mode == 'stream').lower()}", text=text)
    same(summary.table, expected)
    assert len(summary.steps) == (2 if mode == "stream" else 0)


def test_columns_in_another_order_are_not_mixed_up(spark, tmp_path: Path) -> None:
    """Spark takes them by their places, and would read one as the other."""
    (tmp_path / "in.csv").write_text("id,ts,card,paid,amount\n1,2024-01-01 00:00:00,a,true,5\n", encoding="utf-8")
    with pytest.raises(RunError, match="header"):
        start(tmp_path, text=with_source(f'format = "csv"\npath = "in.csv"\n{COLUMNS}'))


QUOTED = """\
id,ts,card,amount,paid
1,2024-01-01 00:00:00,"Joe ""X"", Inc",5,true
2,2024-01-01 00:00:01,NA,,
3,2024-01-01 00:00:02,"",7,
"""


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_quotes_in_quotes(spark, tmp_path: Path, engine: str) -> None:
    """Doubled, as spreadsheets write them; read and written alike here and on Spark. Only what is empty is null."""
    (tmp_path / "in.csv").write_text(QUOTED, encoding="utf-8")
    text = with_source(f'format = "csv"\npath = "in.csv"\n{COLUMNS}')
    start(tmp_path, f"engine={engine}", "sink.format=csv", "sink.path=out", text=text)
    results = ", ".join(f'{name} = "long"' for name in RESULTS)
    again = with_source(f'format = "csv"\npath = "out"\n{COLUMNS[:-2]}, {results} }}')
    other = {"local": "spark", "spark": "local"}[engine]
    for table in (
        start(tmp_path, f"engine={engine}", text=text).table,
        start(tmp_path, f"engine={other}", 'aggregates={ n = "count()" }', text=again).table,
    ):
        rows = table.sort_by("id")
        assert rows["card"].to_pylist() == ['Joe "X", Inc', "NA", None]
        assert rows["amount"].to_pylist() == [5, None, 7]
        assert rows["total_1h"].to_pylist() == [5, None, 7]


@pytest.mark.parametrize("kind", ["csv", "json"])
@pytest.mark.parametrize("mode", ["batch", "stream"])
def test_what_cannot_be_read_is_an_error(spark, tmp_path: Path, kind: str, mode: str) -> None:
    """And no null that nobody is told of, unless the job asks for that."""
    good, bad = as_lines(events(2), kind)
    amount = str(events(2)["amount"][1])
    bad = bad.replace(*(f'"amount": {amount}', '"amount": "2 EUR"') if kind == "json" else (f",{amount},", ",2 EUR,"))
    (tmp_path / "in").mkdir()
    header = "id,ts,card,amount,paid\n" if kind == "csv" else ""
    (tmp_path / "in" / f"some.{kind}").write_text(f"{header}{good}\n{bad}\n", encoding="utf-8")
    text = with_source(f'format = "{kind}"\npath = "in"\n{COLUMNS}')
    with pytest.raises(RunError) as caught:
        start(tmp_path, f"mode={mode}", text=text)
    told = str(caught.value)
    assert re.match(rf"\S+/in/some\.{kind} holds what cannot be read as its schema says: .*2 EUR", told), told
    assert told.endswith('or take such values as null: source.options.mode = "PERMISSIVE"')
    assert "\n" not in told
    # a checkpoint remembers no micro-batch that failed
    found = start(tmp_path, f"mode={mode}", 'source.options={ mode = "PERMISSIVE" }', text=text).table.sort_by("id")
    assert found["amount"].to_pylist() == [events(2)["amount"][0].as_py(), None]


def test_the_rate(spark, tmp_path: Path) -> None:
    text = """\
time = "timestamp"
id = "value"
windows = { all = { lifetime = true } }
aggregates = { rows = "count()", greatest = "max(value)" }
source = { format = "rate", rows_per_second = 50 }
stream = { watermark = "1m", ttl = "1h" }
sink = { format = "memory", merge = true }
"""
    summary = until_read(tmp_path, text, 60, "order=[]")
    table = summary.table.sort_by("value")
    assert table["rows_all"].to_pylist() == [value + 1 for value in table["value"].to_pylist()]
    assert table["greatest_all"].to_pylist() == table["value"].to_pylist()


# ---- sinks --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_text_files_of_a_batch(spark, tmp_path: Path, expected: pa.Table, kind: str) -> None:
    (tmp_path / "out").mkdir()  # empty, as an interrupted run leaves it
    start(tmp_path, f"sink.format={kind}", "sink.path=out")
    assert ds.dataset(tmp_path / "out", format=kind).to_table().num_rows == 200
    start(tmp_path, f"sink.format={kind}", "sink.path=out", "sink.mode=overwrite", 'sink.options={ compression = "gzip" }')
    files = [file.name for file in (tmp_path / "out").glob("part-*")]
    assert files
    assert all(name.endswith(f".{kind}.gz") for name in files), "options go to Spark's writer"
    same(ds.dataset([str(tmp_path / "out" / name) for name in files], format=kind).to_table(), expected)


def test_a_stream_of_csv_with_dead_letters(spark, tmp_path: Path) -> None:
    """Late events go apart as they came, with a header; results have no column for them."""
    settings = ("stream.watermark=1m", "stream.late=side", 'dead_letters={ path = "late", format = "csv" }')
    summary = start(tmp_path, *REPLAY, *settings, "sink.format=csv", "sink.path=out")
    late = spark.read.option("header", True).csv(str(tmp_path / "late"))
    found = spark.read.option("header", True).csv(str(tmp_path / "out"))
    assert set(late.columns) == {*events().column_names, "batch"}
    assert late.count() == summary.counts["late"] > 0
    assert "late" not in found.columns
    assert {int(row.id) for row in late.collect()} | {int(row.id) for row in found.collect()} == set(range(200))


def test_a_database_of_a_batch(spark, tmp_path: Path, expected: pa.Table) -> None:
    url = f"jdbc:derby:{tmp_path}/db;create=true"
    settings = ["sink.format=jdbc", f"sink.url='{url}'", "sink.table=features"]
    start(tmp_path, *settings)

    def read() -> pa.Table:
        return spark.read.format("jdbc").option("url", url).option("dbtable", "features").load().toArrow()

    same(read(), expected)
    with pytest.raises(RunError, match=r"(?i)features.* already exists"):
        start(tmp_path, *settings)
    start(tmp_path, *settings, "sink.mode=append")
    assert read().num_rows == 400
    start(tmp_path, *settings, "sink.mode=overwrite")
    same(read(), expected)


def test_a_database_gets_every_revision(spark, tmp_path: Path, expected: pa.Table) -> None:
    """Without `merge` it is a log of what was said."""
    url = f"jdbc:derby:{tmp_path}/db;create=true"
    summary = start(tmp_path, *REPLAY, "sink.format=jdbc", f"sink.url='{url}'", "sink.table=features")
    found = spark.read.format("jdbc").option("url", url).option("dbtable", "features").load().toArrow()
    assert found.num_rows == summary.counts["out"] > 200
    same(latest(found.rename_columns([name.lower() for name in found.column_names]), "id"), expected)


def test_a_table(spark, tmp_path: Path, expected: pa.Table) -> None:
    """In the session's catalogue; a stream appends what it says to it."""
    settings = ["sink.format=table", "sink.table=slidewise_features", "sink.provider=parquet"]
    try:
        start(tmp_path, *settings)
        same(spark.table("slidewise_features").toArrow(), expected)
        with pytest.raises(RunError, match="already exists"):
            start(tmp_path, *settings)
        for mode, rows in (("append", 400), ("overwrite", 200)):
            start(tmp_path, *settings, f"sink.mode={mode}")
            spark.catalog.refreshTable("slidewise_features")  # this session may have looked at its files before
            assert spark.table("slidewise_features").count() == rows, mode
        streamed = ["sink.format=table", "sink.table=slidewise_stream"]
        summary = start(tmp_path, *REPLAY, *streamed)
        found = spark.table("slidewise_stream")
        assert found.count() == summary.counts["out"] > 200
        same(latest(found, "id").toArrow(), expected)
    finally:
        spark.sql("DROP TABLE IF EXISTS slidewise_features")
        spark.sql("DROP TABLE IF EXISTS slidewise_stream")


@pytest.mark.spark
@pytest.mark.slow
def test_a_table_outlives_the_command(tmp_path: Path) -> None:
    """With Hive's catalogue and a warehouse that stays; a second command finds the table."""
    # nothing is lost if the machine stops, and Java that lives for half a minute need not compile well
    java = f"-Dderby.stream.error.file={tmp_path}/derby.log -Dderby.system.durability=test -XX:TieredStopAtLevel=1"
    settings = f"""
[spark]
master = "local[1]"
[spark.conf]
"spark.sql.catalogImplementation" = "hive"
"spark.sql.warehouse.dir" = "{tmp_path}/warehouse"
"spark.hadoop.javax.jdo.option.ConnectionURL" = "jdbc:derby:{tmp_path}/metastore;create=true"
"spark.driver.extraJavaOptions" = "{java}"
"""
    text = JOB.replace('format = "memory"', 'format = "table"\ntable = "features"\nprovider = "parquet"\nmode = "append"')
    path = job(tmp_path, text + settings)
    for times in (1, 2):
        done = slidewise("run", str(path), "--json", "--set", 'aggregates={ payments = "count()" }', cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert ds.dataset(tmp_path / "warehouse" / "features", format="parquet").to_table().num_rows == 200 * times


def test_moments_without_a_zone_are_utc(spark, tmp_path: Path) -> None:
    """Here and on Spark alike."""
    (tmp_path / "in.csv").write_text("id,ts,card,amount,paid\n1,2024-01-01 00:00:00,a,5,true\n", encoding="utf-8")
    text = with_source(f'format = "csv"\npath = "in.csv"\n{COLUMNS}')
    for engine in ("local", "spark"):
        found = start(tmp_path, f"engine={engine}", text=text).table
        assert found["ts"].to_pylist() == [START], engine
