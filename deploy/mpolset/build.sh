#!/bin/sh
# Usage: build.sh FILE
# Compiles mpolset into FILE: static, so that it works in any container of the compiler's
# architecture. Two builds by the same compiler are equal.
#   CC  the C compiler (gcc); gcc, aarch64-linux-gnu-gcc and x86_64-linux-gnu-gcc are
#       installed from Debian's packages where they are missing
set -eu

compiler=${CC:-gcc}
mkdir -p "$(dirname "$1")"
command -v "$compiler" >/dev/null || {
  case $compiler in
    aarch64-linux-gnu-gcc) packages="gcc-aarch64-linux-gnu libc6-dev-arm64-cross" ;;
    x86_64-linux-gnu-gcc) packages="gcc-x86-64-linux-gnu libc6-dev-amd64-cross" ;;
    *) packages="gcc libc6-dev" ;;
  esac
  echo "mpolset: installing $packages" >&2
  # shellcheck disable=SC2086  # one word per package
  { apt-get -q update && apt-get -yq install --no-install-recommends $packages; } >&2
}
# Without a build id and debug information, the file has no trace of its folder.
"$compiler" -std=c17 -Os -static -s -Wall -Wextra -Werror -Wl,--build-id=none \
  -o "$1" "$(dirname "$0")/mpolset.c"
