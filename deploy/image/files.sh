#!/bin/bash
# files.sh FOLDER BINARY, from the root of the checkout: puts all our files into FOLDER, at their paths in the image. The
# Dockerfile and build.sh share it.
#
# kubectl is downloaded and checked against the catalogue (artifacts/kubectl.yaml), in the version KUBECTL_VERSION
# [the default version of kk]; or it is the file KUBECTL, unchecked.
set -euo pipefail
umask 022
folder=$1 binary=$2
default=$(sed -n 's/^pub const DEFAULT_KUBERNETES_VERSION: &str = "v\(.*\)";$/\1/p' crates/kk-config/src/version.rs)
version=${KUBECTL_VERSION:-$default}

fetch_kubectl() { # TARGET
  local arch url sum
  arch=$(dpkg --print-architecture)
  url=$(sed -n 's/^url: //p' artifacts/kubectl.yaml)
  url=${url//\{v\}/$version} url=${url//\{arch\}/$arch}
  sum=$(awk -v arch="$arch:" -v version="$version:" '
    /^  [^ ]/ { here = $1 == arch }
    here && $1 == version { print $2 }' artifacts/kubectl.yaml)
  if [ -z "$sum" ]; then
    echo "error: artifacts/kubectl.yaml has no kubectl $version for $arch" >&2
    echo "hint: choose another one by KUBECTL_VERSION, or give a file by KUBECTL" >&2
    return 1
  fi
  echo "downloading $url" >&2
  if ! curl --fail --silent --show-error --location --retry 3 --output "$1" "$url"; then
    echo "hint: give a kubectl that is there by KUBECTL=FILE" >&2
    return 1
  fi
  if ! echo "$sum  $1" | sha256sum --check --status; then
    echo "error: $url is not the file that artifacts/kubectl.yaml describes (SHA-256)" >&2
    return 1
  fi
}

mkdir -p "$folder"/{usr/local/bin,hooks,frameworks,run/shell-operator}
install -m 755 "$binary" "$folder/shell-operator"
ln -s /shell-operator "$folder/usr/local/bin/shell-operator"
cp -r crates/shell-operator/shell/frameworks/shell "$folder/frameworks/"
install -m 644 crates/shell-operator/shell/shell_lib.sh "$folder/shell_lib.sh"
# For the debug socket, under any user that the operator runs as.
chmod 1777 "$folder/run/shell-operator"
if [ -n "${KUBECTL:-}" ]; then
  cp "$KUBECTL" "$folder/usr/local/bin/kubectl"
else
  fetch_kubectl "$folder/usr/local/bin/kubectl"
fi
chmod 755 "$folder/usr/local/bin/kubectl"
