#!/bin/sh
# Usage: build.sh FOLDER [URL]
# Builds what a release consists of, of the last commit, and replaces FOLDER with it. The
# same commit and packages give the same files. With the URL of the archive of the kubectl
# plugin, krew's manifest is one of them.
#   PYTHON  Python with the packages of tests/requirements.txt (python3)
#   IMAGE   "no" leaves the image out
#   ARCH    architectures of images, such as "amd64 arm64" (that of this machine)
set -eu

folder=$(realpath "$1") url=${2:-}
cd "$(dirname "$0")/../.."
python=${PYTHON:-python3}
# It may be relative to this folder, which another one replaces below.
case $python in */*) python=$(realpath --no-symlinks "$python") ;; esac
export LC_ALL=C
umask 022

head=$(git rev-parse HEAD 2>/dev/null) ||
  { echo "dist: not a checkout of git, where a release is built: clone the repository" >&2; exit 1; }
# What was built by something else is not ours to remove.
[ ! -e "$folder" ] || [ -e "$folder/SHA256SUMS" ] || rmdir "$folder" 2>/dev/null ||
  { echo "dist: $folder has files of others: move it away" >&2; exit 1; }
[ -z "$(git status --porcelain)" ] ||
  echo "dist: uncommitted changes are left out: $head is built" >&2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Only files of the commit: a source distribution takes whatever is in its folder.
git clone --quiet --shared . "$work/tree"
cd "$work/tree"
git checkout --quiet --detach "$head"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

[ "$("$python" -m hatchling metadata urls)" != "{}" ] ||
  echo "dist: pyproject.toml has no [project.urls]: package indexes will show none" >&2
"$python" -m hatchling build -d "$work/dist" >"$work/wheel.log" 2>&1 ||
  { cat "$work/wheel.log" >&2; exit 1; }
"$python" deploy/kubectl/build.py "$work/dist" ${url:+"$url"}
"$python" deploy/dist/chart.py "$work/dist"
missing=
if [ "${IMAGE:-}" = no ]; then
  echo "dist: the image is left out: IMAGE=no" >&2
elif [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "dist: the image is left out: it needs root and apt: sudo make dist on Debian or Ubuntu" >&2
else
  for arch in ${ARCH:-""}; do
    ARCH=$arch PYTHON=$python deploy/image/build.sh "$work/dist" >"$work/image.log" 2>&1 && continue
    missing=yes
    echo "dist: an image is missing; make image${arch:+ ARCH=$arch} failed:" \
      "$(tail -n 1 "$work/image.log")" >&2
  done
fi
"$python" deploy/dist/sbom.py "$work/dist"
(cd "$work/dist" && sha256sum -- *) >"$work/SHA256SUMS"
mv "$work/SHA256SUMS" "$work/dist"
rm -rf "$folder"
mv "$work/dist" "$folder"
cat "$folder/SHA256SUMS"
[ -z "$missing" ]
