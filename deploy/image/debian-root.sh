#!/bin/sh
# Usage: debian-root.sh ROOT CACHE ARCHITECTURE
# Installs this distribution's Python, the libraries that it needs and openssl into the folder
# ROOT: no shell, no package manager. Packages are kept in the folder CACHE.
set -eu

root=$1 cache=$2 arch=$3
state=$cache/apt-$arch
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
umask 022

# What Python depends on without our daemon: package management, line editing, data bases,
# NIS; names of time zones and of media types.
LEFT_OUT='dpkg|tar|c?debconf|perl-base|install-info|[mg]awk|readline-common|media-types|netbase|tzdata'
LEFT_OUT="$LEFT_OUT|lib(acl|com-err|db[0-9]|debconfclient|gmp|gssapi|k5crypto|keyutils|krb5|md[0-9]|mpfr|ncursesw|nsl)[^ ]*"
LEFT_OUT="$LEFT_OUT|lib(pcre2|readline|selinux|sigsegv|sqlite3|tinfo|tirpc)[^ ]*"
# Parts of Python's library for these, for development, and for windows on a screen.
MODULES='_curses* curses readline* _sqlite3* sqlite3 _dbm* _gdbm* dbm nis* _zstd*
  idlelib tkinter turtle* lib2to3 ensurepip pydoc_data test config-*'

# A separate apt state with this machine's sources; the system's state stays as it is.
apt() {
  program=$1
  shift
  "$program" -q -o APT::Architecture="$arch" -o APT::Architectures="$arch" \
    -o Dir::State="$state" -o Dir::State::lists="$state/lists" \
    -o Dir::State::status="$state/status" -o Dir::Cache="$state/cache" \
    -o Dir::Cache::pkgcache=pkgcache.bin -o Dir::Cache::srcpkgcache=srcpkgcache.bin \
    -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
    -o APT::Sandbox::User=root -o APT::Install-Recommends=false \
    -o Acquire::Languages=none -o Acquire::Retries=2 "$@"
}

mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$cache/debs"
: >"$state/status"
apt apt-get update >"$state/log" 2>&1 || { cat "$state/log" >&2; exit 1; }
python=$(apt apt-cache depends --important python3 | sed -n 's/^ *Depends: \(python3\.[0-9]*\)$/\1/p')
[ -n "$python" ] || { echo "apt has no python3 for an image" >&2; exit 1; }
# The C++ library is protobuf's; openssl makes the webhook's certificates.
packages=$(apt apt-get --simulate install base-files "$python-minimal" "lib$python-stdlib" libstdc++6 openssl |
  sed -n 's/^Inst \([^ ]*\) (\([^ ]*\) [^)]*\[\([^]]*\)\]).*/\1 \2 \3/p')
# libzstd is dpkg's; from Debian 13 on OpenSSL needs it, too.
ssl=$(echo "$packages" | sed -n 's/^\(libssl[^ ]*\) .*/\1/p')
apt apt-cache depends --important "$ssl" | grep -q ' libzstd1$' || LEFT_OUT="$LEFT_OUT|libzstd[^ ]*"
packages=$(echo "$packages" | grep -Ev "^($LEFT_OUT) " | sort)

# Symbolic links first, so that packages of either layout end up in /usr.
for folder in bin sbin lib lib64; do
  mkdir -p "$root/usr/$folder"
  ln -s "usr/$folder" "$root/$folder"
done
# apt-get does not download files again that exist.
# shellcheck disable=SC2046  # one word per package
(cd "$cache/debs" && apt apt-get download $(echo "$packages" | awk '{print $1 "=" $2}')) >"$state/log" 2>&1 ||
  { cat "$state/log" >&2; exit 1; }
echo "$packages" | while read -r name version architecture; do
  file="$cache/debs/${name}_$(echo "$version" | sed 's/:/%3a/')_$architecture.deb"
  dpkg-deb --fsys-tarfile "$file" | tar -x --keep-directory-symlink -C "$root"
  # Scanners look here in images without a package manager.
  mkdir -p "$root/var/lib/dpkg/status.d"
  dpkg-deb --field "$file" >"$root/var/lib/dpkg/status.d/$name"
done

ln -s "$python" "$root/usr/bin/python3"
echo 'root:x:0:0:root:/root:/sbin/nologin' >"$root/etc/passwd"
echo 'nonroot:x:65532:65532:nonroot:/:/sbin/nologin' >>"$root/etc/passwd"
printf 'root:x:0:\nnonroot:x:65532:\n' >"$root/etc/group"

(
  cd "$root"
  find usr/share/doc -type f ! -name copyright -delete
  find usr/share/doc -type l ! -exec test -e {} \; -delete
  rm -rf usr/share/man usr/share/info usr/share/locale usr/share/lintian usr/share/bug \
    usr/share/pixmaps usr/share/applications usr/share/binfmts usr/lib/*-linux-gnu/gconv
  # Scripts in Perl, and a program for logins that Ubuntu's base-files has.
  rm -rf usr/bin/c_rehash usr/lib/ssl/misc usr/bin/locale-check
  cd "usr/lib/$python"
  for module in $MODULES; do
    # shellcheck disable=SC2086  # patterns
    rm -rf $module lib-dynload/$module
  done
)
