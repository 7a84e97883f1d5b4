#!/bin/bash
# Library for hooks in bash: `source /shell_lib.sh`, define handlers, call `hook::run "$@"`.
# Needs bash 4.4 and jq. The functions are in frameworks/shell/.

set -Eeuo pipefail
shopt -s inherit_errexit failglob

# Where and why a hook failed, as other languages show it.
shell_lib::traceback() {
  local status=$? i
  trap - ERR
  {
    echo "Traceback (most recent call last):"
    for ((i = ${#FUNCNAME[@]} - 1; i > 0; i--)); do
      echo "  File \"${BASH_SOURCE[i]}\", line ${BASH_LINENO[i - 1]}, in ${FUNCNAME[i]}"
      sed -n "${BASH_LINENO[i - 1]}s/^[[:space:]]*/    /p" "${BASH_SOURCE[i]}" 2> /dev/null || true
    done
    echo "Exiting with status $status"
  } >&2
  exit "$status"
}
trap shell_lib::traceback ERR

for shell_lib_file in "${FRAMEWORK_DIR:-$(dirname "${BASH_SOURCE[0]}")}"/frameworks/shell/*.sh; do
  # shellcheck source=/dev/null
  source "$shell_lib_file"
done
unset shell_lib_file
