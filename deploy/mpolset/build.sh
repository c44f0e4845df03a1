#!/bin/sh
# Usage: build.sh FILE
# Compiles mpolset into FILE: static, so that it works in any container of this machine's
# architecture. Two builds by the same compiler are equal.
#   CC  the C compiler (gcc, which is installed from Debian's packages where it is missing)
set -eu

compiler=${CC:-gcc}
mkdir -p "$(dirname "$1")"
command -v "$compiler" >/dev/null || {
  echo "mpolset: installing gcc" >&2
  { apt-get -q update && apt-get -yq install --no-install-recommends gcc libc6-dev; } >&2
}
# Without a build id and debug information, the file has no trace of its folder.
"$compiler" -std=c17 -Os -static -s -Wall -Wextra -Werror -Wl,--build-id=none \
  -o "$1" "$(dirname "$0")/mpolset.c"
