#!/bin/bash
# Runs all tests that need no hosts, and sums up: the last line is `N passed, N failed`. Arguments are for `cargo test`;
# PROFILE is cargo's profile. The programs that some tests run (a real API server, etcd and helm) are built beside the tests
# themselves the first time.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
log=$(mktemp)
trap 'rm -f "$log" "$log".*' EXIT

# Servers of the tests are on this machine, whatever the way to others is.
export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost

cannot() { # what could not be done
  echo "$1"
  echo "0 passed, 1 failed"
  exit 1
}
profile=${PROFILE:-dev}
directory=${CARGO_TARGET_DIR:-target}/${profile/#dev/debug}
cargo build --profile "$profile" --bin kk-lab || cannot "the lab does not compile"
"$directory/kk-lab" mirror build --programs kubernetes,etcd,helm >/dev/null 2>"$log.programs" & programs=$!
cargo build --profile "$profile" --bins --tests || cannot "the tests do not compile"
wait "$programs" || { cat "$log.programs"; cannot "the programs that tests run could not be built"; }

# Many tests wait for something most of the time.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((2 * $(nproc)))}
cargo test --profile "$profile" --no-fail-fast "$@" 2>&1 | tee "$log"
code=${PIPESTATUS[0]}
echo
# Tests that need root and a lab of their own are ignored here; `make test-lab` runs them.
awk '/^test result:/ { passed += $4; failed += $6 } END { printf "%d passed, %d failed\n", passed, failed }' "$log"
exit "$code"
