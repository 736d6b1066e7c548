#!/usr/bin/env bash
# Tests the Python package with the program in WIRELAB. Its requirements have a virtual environment of their own in the
# user's cache, whose name follows from python/requirements.txt and the version of Python.
#   tests/python.sh --run SCRIPT [ARGUMENT...]   runs a script of the project in that environment instead
set -euo pipefail
cd "$(dirname "$0")/../python"

key=$({ python3 --version && cat requirements.txt; } | sha256sum | cut -c1-16)
environment=${XDG_CACHE_HOME:-$HOME/.cache}/wirelab/tools/python-$key
if ! [ -e "$environment/complete" ]; then
  echo "installing what the Python package's tests need into $environment"
  rm -rf "$environment"
  python3 -m venv "$environment"
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --requirement requirements.txt
  touch "$environment/complete"
fi
if [ "${1:-}" = --run ]; then
  cd ..
  exec "$environment/bin/python" "${@:2}"
fi
: "${WIRELAB:?is the path of the program}"
"$environment/bin/mypy" --cache-dir /dev/null
# The tests use the wheel as a user gets it. Python imports from a wheel without unpacking it.
wheel=$(mktemp -d)
trap 'rm -rf "$wheel"' EXIT
"$environment/bin/python" -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$wheel" .
PATH=$environment/bin:$PATH PYTHONPATH=$(echo "$wheel"/*.whl) WIRELAB=$WIRELAB PYTHONDONTWRITEBYTECODE=1 \
  python -m pytest --quiet -p no:cacheprovider "$@"
