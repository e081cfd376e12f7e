#!/bin/sh
# Makes or updates the environment .venv of this checkout and stamps it. Called by make; safe to call twice at once.
#
#     scripts/environment.sh STAMP
set -eu
cd "$(dirname "$0")/.."
stamp=$1
venv=.venv

# Python 3.11 or newer. A name on the PATH may be a version manager's empty promise, so each is asked.
find_python() {
    for python in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
        if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            echo "$python"
            return
        fi
    done
    echo "Slidewise needs Python 3.11 or newer, and none was found. Install one, or name it: make PYTHON=/path/to/python3" >&2
    return 1
}

make_environment() {
    python=$(find_python)
    echo "Making $venv with $("$python" --version)"
    rm -rf "$venv"
    "$python" -m venv "$venv" 2>/dev/null && return
    # Debian keeps ensurepip in a package of its own: without it, let a pip that is there install one into .venv.
    rm -rf "$venv"
    if "$python" -m venv --without-pip "$venv" && "$python" -m pip --python "$venv/bin/python" install -q pip; then
        return
    fi
    rm -rf "$venv"
    "$python" -m virtualenv -q "$venv" 2>/dev/null && return
    rm -rf "$venv"
    echo "$python can make no virtual environment: it has neither ensurepip nor pip." >&2
    echo "On Debian or Ubuntu: apt-get install python3-venv" >&2
    return 1
}

# One at a time, where the machine has flock; the second finds the work done.
mkdir -p .cache
if command -v flock >/dev/null 2>&1; then
    exec 9>.cache/environment.lock
    flock 9
fi
if [ -e "$stamp" ] && [ ! pyproject.toml -nt "$stamp" ] && [ ! requirements/dev.lock -nt "$stamp" ]; then
    exit 0
fi

# An environment that was made elsewhere, or whose Python has gone, is made anew.
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    make_environment
fi
echo "Installing Slidewise and what it is developed with (some minutes the first time)"
quiet=--quiet
[ -t 1 ] && quiet=          # somebody looks: show what is being fetched
"$venv/bin/python" -m pip install $quiet --disable-pip-version-check --no-input \
    --constraint requirements/dev.lock --editable '.[dev]'
touch "$stamp"
