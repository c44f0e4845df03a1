#!/bin/sh
# Installs the Debian packages that tests of containerd, Kubernetes, QEMU and systemd start.
# Without root it only lists what is missing; those tests then skip with the reason.
set -eu

export PATH="$PATH:/usr/sbin:/sbin" DEBIAN_FRONTEND=noninteractive

# A command of each package, and the package. From Debian 13 on buildah builds nothing
# without netavark, which it only recommends. Of procps the unit has /bin/kill, which a
# shell has, too.
WANTED="
runc                runc
numactl             numactl
qemu-system-x86_64  qemu-system-x86
debootstrap         debootstrap
zstd                zstd
cpio                cpio
depmod              kmod
mke2fs              e2fsprogs
systemd-analyze     systemd
dbus-daemon         dbus
openssl             openssl
buildah             buildah
/usr/lib/podman/netavark  netavark
ps                  procps
zsh                 zsh
ip                  iproute2
"
# Debian's tests take other suites' containerd and busybox without installing.
if ! grep -qx 'ID=debian' /etc/os-release; then
  WANTED="$WANTED
containerd          containerd
busybox             busybox-static
"
fi

command -v apt-get >/dev/null || {
  echo "packages: no apt-get on this machine; end-to-end tests without their programs skip" >&2
  exit 0
}
missing=$(echo "$WANTED" | while read -r command package; do
  [ -z "$package" ] || command -v "$command" >/dev/null || printf '%s ' "$package"
done)
[ -n "$missing" ] || exit 0
[ "$(id -u)" = 0 ] || {
  echo "packages: only root can install $missing; their tests skip" >&2
  exit 0
}

echo "packages: installing $missing" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086  # one word per package
if ! { apt-get update -q && apt-get install -yq --no-install-recommends $missing; } >"$log" 2>&1; then
  cat "$log" >&2
  echo "packages: apt-get could not install $missing" >&2
  exit 1
fi
