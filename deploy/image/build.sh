#!/bin/sh
# Usage: build.sh FOLDER
# Builds the Containerfile of this folder on a base of this distribution's packages, and
# writes the image as an OCI archive to FOLDER. The build is reproducible: the same inputs
# give the same image.
#   ARCH               Debian's name of the image's architecture, amd64 or arm64, which the
#                      archive's name then has, too (that of this machine). The kernel has to
#                      start programs of it, by qemu-user-static's entry in binfmt_misc
#   PYTHON             Python with pip and hatchling, for the wheels (python3)
#   SOURCE_DATE_EPOCH  time of all files (that of the last commit)
#   XDG_CACHE_HOME     cache for Debian packages (~/.cache)
set -eu

mkdir -p "$1"
folder=$(realpath "$1")
cd "$(dirname "$0")/../.."
export PATH="$PATH:/usr/sbin:/sbin" LC_ALL=C DEBIAN_FRONTEND=noninteractive
umask 022

python=${PYTHON:-python3}
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
revision=$(git rev-parse HEAD 2>/dev/null || true)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/nri-resmgr/image
export SOURCE_DATE_EPOCH="$epoch"

[ "$(id -u)" = 0 ] || { echo "image: the build needs root: sudo make image" >&2; exit 1; }
native=$(dpkg --print-architecture)
arch=${ARCH:-$native}
case $arch in
  amd64) machine=x86_64 ;;
  arm64) machine=aarch64 ;;
  "$native") machine=$(uname -m) ;;
  *) echo "image: ARCH has to be amd64, arm64 or $native, not $arch" >&2; exit 1 ;;
esac
[ "$arch" = "$native" ] || export CC="$machine-linux-gnu-gcc"
# From Debian 13 on buildah builds nothing without netavark, which it only recommends.
{ command -v buildah && [ -x /usr/lib/podman/netavark ]; } >/dev/null || {
  echo "image: installing buildah" >&2
  { apt-get -q update && apt-get -yq install --no-install-recommends buildah netavark; } >&2
}

mkdir -p "$cache"
# The folder of a build that was killed has no lock.
exec 8>"$cache/builds.lock"
flock 8
for old in "$cache"/build-*; do
  [ -d "$old" ] || continue
  flock --nonblock "$old" rm -rf "$old" ||
    echo "image: $old stays: another build uses it, or it cannot be removed" >&2
done
work=$(mktemp -d "$cache/build-XXXXXX")
trap 'rm -rf "$work"' EXIT
exec 9<"$work"
flock 9
exec 8>&-
# Separate storage with the vfs driver: works on every file system, and is removed later.
buildah() {
  command buildah --log-level error --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"
}

mkdir "$work/root"
# One apt at a time: two would conflict over the lists.
flock "$cache" deploy/image/debian-root.sh "$work/root" "$cache" "$arch"
[ "$arch" = "$native" ] || chroot "$work/root" /usr/bin/python3 -B -c "" || {
  echo "image: programs of $arch do not run on this machine: apt-get install qemu-user-static" >&2
  exit 1
}
version=$(basename "$work"/root/usr/lib/python3.*)
deploy/image/wheels.sh "$python" "${version#python}" "$work/context/build/image/wheels" "$machine"
deploy/mpolset/build.sh "$work/context/build/image/mpolset"
mkdir -p "$work/context/deploy/image"
cp deploy/image/install.py deploy/image/Containerfile "$work/context/deploy/image"
# buildah 1.39 writes digests of what RUN mounts into the history, times and modes included.
chmod -R u=rwX,go=rX "$work/context"
find "$work/context" -exec touch --date "@$epoch" {} +
wheel=$(basename "$work"/context/build/image/wheels/nri_resmgr-*.whl)
version=$(echo "$wheel" | cut -d- -f2)
# The name that the kubelet uses for the manifests' image.
name=docker.io/library/nri-resmgr:$version

base=$(buildah from --arch "$arch" scratch)
buildah add --quiet "$base" "$work/root" / >/dev/null
buildah commit --quiet --identity-label=false --timestamp "$epoch" "$base" localhost/base >/dev/null
# Low limits: by default buildah raises both to 1048576, which root in a container may not do.
buildah build --quiet --arch "$arch" --isolation chroot --identity-label=false \
  --ulimit nofile=4096:4096 --ulimit nproc=4096:4096 \
  --timestamp "$epoch" --build-arg BASE=localhost/base --build-arg VERSION="$version" \
  --build-arg REVISION="$revision" --file "$work/context/deploy/image/Containerfile" \
  --tag image "$work/context" >/dev/null
buildah push --quiet image "oci:$work/oci:$name"
archive=$folder/nri-resmgr-$version${ARCH:+-$ARCH}.oci.tar
tar --create --file "$archive" --directory "$work/oci" --sort=name --mtime="@$epoch" \
  --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --format=ustar .

digest=$(sed 's/.*"digest":"\([^"]*\)".*/\1/' "$work/oci/index.json")
cat <<END
$archive
  is $name, $digest.
  To a node:      ctr -n k8s.io images import $(basename "$archive")
  To a registry:  skopeo copy oci-archive:$(basename "$archive") docker://REGISTRY/nri-resmgr:$version
END
