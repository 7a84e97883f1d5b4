#!/bin/bash
# Runs all tests that need neither root nor the lab, and sums up: the last line is `N passed, N failed`.
set -uo pipefail
cd "$(dirname "$0")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cargo test --workspace --no-fail-fast "$@" 2>&1 | tee "$log"
code=${PIPESTATUS[0]}
echo
# Tests that need root and a lab of their own are ignored here; `make e2e` runs them.
awk '/^test result:/ { passed += $4; failed += $6 } END { printf "%d passed, %d failed\n", passed, failed }' "$log"
exit "$code"
