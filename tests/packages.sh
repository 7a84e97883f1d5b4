#!/bin/sh
# Installs the Debian packages that building and testing need; does nothing if all are installed. kk-lab itself installs the
# packages that only the lab needs.
set -eu
missing=
need() { # what tells that it is there (a program, or a file by its path), package
  case $1 in
  /*) [ -e "$1" ] || missing="$missing $2" ;;
  *) command -v "$1" >/dev/null || missing="$missing $2" ;;
  esac
}
PATH=$PATH:/usr/sbin:/sbin
need make make
need cc gcc
need /usr/include/stdio.h libc6-dev
need pkg-config pkg-config
need /usr/include/openssl/ssl.h libssl-dev
need ssh openssh-client
need /usr/sbin/sshd openssh-server
need jq jq
need curl curl
need ps procps
need python3 python3
need shellcheck shellcheck
need minisign minisign
# Packages of distributions with rpm are collected by them.
need dnf dnf
need /usr/lib/python3/dist-packages/dnf-plugins/download.py dnf-plugins-core
need rpm rpm
need createrepo_c createrepo-c
# Debian's own version is old; it fetches the version that a module requires through the module proxy.
need go golang-go
[ -n "$missing" ] || exit 0
echo "installing Debian packages:$missing"
run=
[ "$(id -u)" = 0 ] || run=sudo
# A machine that has just started may still be busy with its own upgrades.
wait='-o DPkg::Lock::Timeout=300'
# shellcheck disable=SC2086 # words, none of them with blanks
{
  $run apt-get $wait update -q
  $run env DEBIAN_FRONTEND=noninteractive apt-get $wait install -q -y --no-install-recommends $missing
}
