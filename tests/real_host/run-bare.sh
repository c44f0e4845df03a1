#!/bin/sh
# Makes $1 the root directory of this process' mount namespace and runs the shell command $2
# in its clone of the project. $3 is a folder to share with it as the cache, or empty.
# Called by tests/real_host/bare.py as process 1 of a pid namespace.
set -eu

root=$1 command=$2 cache=$3

# runc cannot change the root directory of containers in a chroot: hence pivot_root, which
# wants a mount.
mount --make-rprivate /
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
# As systemd has them on a machine that it boots (/tmp from Debian 13 on).
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mkdir run/lock
if [ -n "$cache" ]; then
  mkdir -p "./$HOME/.cache/nri-resmgr"
  mount --bind "$cache" "./$HOME/.cache/nri-resmgr"
fi
mkdir old
pivot_root . old
umount --lazy /old
rmdir /old

cd "$HOME/nri-resmgr"
unset OLDPWD
# Not exec: process 1 has to wait for processes that lost their parent.
status=0
sh -c "$command" || status=$?
exit "$status"
