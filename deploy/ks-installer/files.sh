#!/bin/bash
# files.sh FOLDER BINARY: puts the program, helm (the file HELM) and a payload (the directory PAYLOAD) into FOLDER, at their paths
# in the image of ks-installer.
set -euo pipefail
umask 022
folder=$1 binary=$2
for needed in HELM PAYLOAD; do
  [ -n "${!needed:-}" ] || {
    echo "error: $needed is not set" >&2
    echo "hint: HELM is helm's program, PAYLOAD the directory of a payload" >&2
    exit 1
  }
done
"$binary" payload verify "$PAYLOAD"
mkdir -p "$folder/usr/local/bin" "$folder/payload"
install -m 755 "$binary" "$folder/ks-installer"
install -m 755 "$HELM" "$folder/usr/local/bin/helm"
cp -r "$PAYLOAD/." "$folder/payload/"
chmod -R u=rwX,go=rX "$folder/payload"
