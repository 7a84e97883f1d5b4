#!/bin/bash
# Checks all shell scripts of the checkout. A file without `#!` is sent to a host or sourced there: POSIX sh.
set -euo pipefail
cd "$(dirname "$0")/.."
programs=(.ci/run) parts=()
while IFS= read -r -d '' file; do
  if [ "$(head -c 2 "$file")" = '#!' ]; then programs+=("$file"); else parts+=("$file"); fi
done < <(find . -type d \( -name target -o -name .git \) -prune -o -name '*.sh' -print0)
shellcheck "${programs[@]}"
shellcheck --shell=sh "${parts[@]}"
