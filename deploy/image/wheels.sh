#!/bin/sh
# Usage: wheels.sh PYTHON VERSION FOLDER [MACHINE]
# Writes wheels of the project, and of what requirements.txt beside this script locks, to
# FOLDER, for a Python of VERSION (3.13), which may differ from that of PYTHON, on a MACHINE
# (aarch64; that of `uname -m` by default).
set -eu

python=$1 version=$2 folder=$3
cd "$(dirname "$0")/../.."
machine=${4:-$(uname -m)}
abi=cp$(echo "$version" | tr -d .)

mkdir -p "$folder"
"$python" -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$folder" .
"$python" -m pip download --quiet --only-binary=:all: --dest "$folder" \
  --python-version "$version" --implementation cp --abi "$abi" --abi abi3 --abi none \
  --platform "manylinux2014_$machine" --platform "manylinux_2_17_$machine" \
  --platform "manylinux_2_28_$machine" --no-deps --require-hashes \
  --requirement deploy/image/requirements.txt
