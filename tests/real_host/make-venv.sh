#!/bin/sh
# Makes $VENV with the packages of tests/requirements.txt, and the project (editable).
# Debian and Ubuntu ship python3 without venv; root gets it from apt.
set -eu

: "${PYTHON:=python3}" "${VENV:=.venv}"

"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "make: $PYTHON is older than 3.11; call make PYTHON=/path/to/a/newer/python" >&2
  exit 2
}
if ! "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null; then
  [ "$(id -u)" = 0 ] || { echo "make: install python3-venv first (apt-get, root)" >&2; exit 2; }
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -yqq python3-venv
fi
[ -x "$VENV/bin/pip" ] || "$PYTHON" -m venv "$VENV"
pip() { "$VENV/bin/pip" install --quiet --disable-pip-version-check "$@"; }
pip --require-hashes --requirement tests/requirements.txt
pip --no-deps --no-build-isolation --editable .
