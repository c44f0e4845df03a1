#!/bin/sh
# Writes the lock files: packages of development, of the site and of the image. All have
# hashes, serve Python 3.11 and later, and name no index.
set -eu
cd "$(dirname "$0")/../.."

: "${PYTHON:=python3}"
venv=build/venv-lock

[ -x "$venv/bin/pip" ] || "$PYTHON" -m venv "$venv"
"$venv/bin/pip" install --quiet --upgrade uv

compile() {
  "$venv/bin/uv" pip compile --quiet --no-config --upgrade --universal --generate-hashes \
    --python-version 3.11 --no-emit-index-url --custom-compile-command "make lock" "$@"
}

compile --extra dev --output-file tests/requirements.txt pyproject.toml
compile --extra site --constraint tests/requirements.txt \
  --output-file deploy/site/requirements.txt pyproject.toml
# The image's pip installs the others, and stays in its environment.
echo pip | compile --extra kubelet --extra kubernetes --extra systemd \
  --constraint tests/requirements.txt --output-file deploy/image/requirements.txt \
  pyproject.toml -
