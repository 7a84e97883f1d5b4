#!/bin/bash
# Runs all tests that need no hosts, and sums up: the last line is `N passed, N failed`. The programs that some of them
# run (a real API server and etcd) are built beside the tests themselves the first time.
set -uo pipefail
cd "$(dirname "$0")/.."
log=$(mktemp)
trap 'rm -f "$log" "$log".*' EXIT

# Servers of the tests are on this machine, whatever the way to others is.
export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost

cannot() { # what could not be done
  echo "$1"
  echo "0 passed, 1 failed"
  exit 1
}
cargo build -p kk-lab || cannot "the lab does not compile"
"${CARGO_TARGET_DIR:-target}/debug/kk-lab" mirror build --programs kubernetes,etcd >/dev/null 2>"$log.programs" & programs=$!
cargo test --workspace --no-run "$@" || cannot "the tests do not compile"
wait "$programs" || { cat "$log.programs"; cannot "the programs that tests run could not be built"; }

cargo test --workspace --no-fail-fast "$@" 2>&1 | tee "$log"
code=${PIPESTATUS[0]}
echo
# Tests that need root and a lab of their own are ignored here; `make e2e` runs them.
awk '/^test result:/ { passed += $4; failed += $6 } END { printf "%d passed, %d failed\n", passed, failed }' "$log"
exit "$code"
