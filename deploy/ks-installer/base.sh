#!/bin/bash
# base.sh FILE: builds the first layer of the image of ks-installer as a tar file: the C library, and busybox, because KubeKey
# checks for a file by `ls` and `cat` in the pod. Packages are downloaded from this machine's Debian mirror and verified by apt.
set -euo pipefail
umask 022
mkdir -p "$(dirname "$1")"
file=$(realpath -m "$1")
packages=(libc6 libgcc-s1 busybox-static)
[ ! "$file" -nt "$0" ] || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/debs" "$work/root"/{bin,etc,tmp,kubesphere/playbooks,var/lib/dpkg}
# apt switches to a user who cannot write here.
(cd "$work/debs" && apt-get -o APT::Sandbox::User=root -q download "${packages[@]}" >/dev/null) || {
  echo "error: apt-get cannot download ${packages[*]}" >&2
  exit 1
}
for deb in "$work"/debs/*.deb; do
  dpkg-deb -x "$deb" "$work/root"
  { dpkg-deb -f "$deb" | sed '1a Status: install ok installed'; echo; } >>"$work/root/var/lib/dpkg/status"
done
rm -rf "$work/root/usr/share"/{doc,man,lintian,locale,gconv} "$work/root/usr/lib"/*/gconv
for name in sh ls cat; do
  [ -e "$work/root/bin/$name" ] || ln -s busybox "$work/root/bin/$name"
done
echo 'ks-installer:x:65532:65532::/tmp:/bin/sh' >"$work/root/etc/passwd"
echo 'ks-installer:x:65532:' >"$work/root/etc/group"
chmod 1777 "$work/root/tmp" "$work/root/kubesphere/playbooks"
tar --create --file "$work/base.tar" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$work/root" .
mv "$work/base.tar" "$file"
