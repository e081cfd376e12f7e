"""A batch on a cluster of executors in processes of their own: rows reach a task in another order each time."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("pyspark", minversion="4", reason="collations came with Spark 4")
pytestmark = [pytest.mark.cluster, pytest.mark.slow]

_SCRIPT = """
import json, os, sys
from pathlib import Path
import pyspark
from pyspark.sql import SparkSession
import slidewise as sw
from slidewise.engines.spark.java import use_java

use_java()
os.environ.update(SPARK_HOME=str(Path(pyspark.__file__).parent), SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
spark = SparkSession.builder.master("local-cluster[2,1,1024]").config(map={
    "spark.ui.enabled": "false", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "512m", "spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", ""),
    "spark.executorEnv.SLIDEWISE_CACHE_DIR": os.environ.get("SLIDEWISE_CACHE_DIR", ""),
    "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""), "spark.sql.shuffle.partitions": "4",
    "spark.slidewise.tasks": "4", "spark.slidewise.paneRows": "50", "spark.slidewise.heavyRows": "1500"}).getOrCreate()
spark.sparkContext.setLogLevel("OFF")
giant = spark.range(4000, numPartitions=4).selectExpr(
    "id as t", "if(id % 2000 < 1000, 'AbC', 'aBc') collate UTF8_LCASE as k", "id % 7 as n")
others = spark.range(300).selectExpr("id as t", "('zz' || (id % 11)) collate UTF8_LCASE as k", "id % 7 as n")
found = sw.rolling(giant.unionAll(others), time="t", by="k", windows={"w": sw.time(20)}, aggs={"s": sw.sum("n")})
print(json.dumps([found.count() for _ in range(3)]))
spark.stop()
"""


def test_a_giant_key_of_collated_text_is_there_once():
    path = os.pathsep.join(filter(None, [*sys.path, os.environ.get("PYTHONPATH")]))
    done = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, timeout=600,
                          env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == [4300, 4300, 4300]
