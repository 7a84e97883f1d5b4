#!/bin/bash
# Runs all tests that need no hosts; the last line is `N passed, N failed`. Arguments before `--` select what cargo builds
# (`-p kk-config`), those after it select tests by name. PROFILE is cargo's profile. DURATIONS=30 prints the slowest tests.
#
# `cargo test` runs one executable after the other, and most tests wait. This script runs several at once.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Servers of the tests are on this machine, whatever proxy the environment names.
export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost

cannot() { # what could not be done
  echo "$1"
  echo "0 passed, 1 failed"
  exit 1
}
select=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do select+=("$1"); shift; done
[ $# = 0 ] || shift
profile=${PROFILE:-dev}
directory=${CARGO_TARGET_DIR:-target}/${profile/#dev/debug}
cargo build --locked --profile "$profile" --bin kk-lab || cannot "the lab does not compile"
# Some tests run a real API server, etcd and helm. They are built once, while cargo compiles.
"$directory/kk-lab" mirror build --programs kubernetes,etcd,helm >/dev/null 2>"$work/programs" & programs=$!
cargo test --locked --profile "$profile" --no-run --message-format=json-render-diagnostics "${select[@]}" >"$work/built" ||
  cannot "the tests do not compile"
wait "$programs" || { cat "$work/programs"; cannot "the programs that tests run could not be built"; }

# Executable, directory of its package, name. Large executables hold most tests, so they begin first.
jq -r 'select(.reason == "compiler-artifact" and .profile.test and .executable)
  | [.executable, (.manifest_path | rtrimstr("/Cargo.toml")), .target.name + " (" + .target.kind[0] + ")"] | @tsv' "$work/built" |
  while IFS=$'\t' read -r executable rest; do
    printf '%s\t%s\t%s\n' "$(stat -c %s "$executable")" "$executable" "$rest"
  done | sort -rn >"$work/executables"
[ -s "$work/executables" ] || cannot "there is no test to run"

export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((2 * $(nproc)))}
report=()
if [ -n "${DURATIONS:-}" ]; then
  # The option is unstable in the library of Rust's tests.
  export RUSTC_BOOTSTRAP=1
  report=(-Zunstable-options --report-time)
fi
run() { # number, executable, directory of the package, name, arguments…
  local number=$1 executable=$2 package=$3 name=$4 arguments=() code
  shift 4
  # The harness of the conformance cases knows no such option.
  [[ $name == conformance* ]] || arguments=("${report[@]}")
  (cd "$package" && CARGO_MANIFEST_DIR=$package exec "$executable" "${arguments[@]}" "$@") >"$work/$number.log" 2>&1
  code=$?
  [ "$code" = 0 ] || echo "$name ended with code $code" >"$work/$number.failed"
  # The output of one executable stays together.
  flock "$work/built" sh -c 'printf "\n=== %s\n" "$1"; cat "$2"' sh "$package: $name" "$work/$number.log"
}
number=0
while IFS=$'\t' read -r _ executable package name; do
  while [ "$(jobs -rp | wc -l)" -ge $((2 * $(nproc))) ]; do wait -n; done
  number=$((number + 1))
  run "$number" "$executable" "$package" "$name" "$@" &
done <"$work/executables"
wait
# Examples in the documentation are compiled by rustdoc, so cargo runs them.
log=$work/documentation.log
cargo test --locked --profile "$profile" --doc "${select[@]}" -- "$@" >"$log" 2>&1 || {
  echo "examples in the documentation failed" >"$work/documentation.failed"
}
cat "$log"

if [ -n "${DURATIONS:-}" ]; then
  printf '\nThe slowest tests:\n'
  cat "$work"/*.log | sed -nE 's/^test (.*) \.\.\. .*<([0-9.]+)s>$/\2 \1/p' | sort -rn | head -n "$DURATIONS"
fi
echo
cat "$work"/*.failed 2>/dev/null
# Tests that need root and a lab of their own are ignored here; `make test-lab` runs them. An executable that ends without a
# result, or fails for another reason than a failed test, counts as one failure.
for log in "$work"/*.log; do
  failed=$(sed -nE 's/^test result: .* ([0-9]+) failed;.*/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
  [ ! -e "${log%.log}.failed" ] || [ "$failed" != 0 ] || echo "test result: FAILED. 0 passed; 1 failed;"
  # A panic's text may hold any bytes.
  grep -a '^test result:' "$log"
done | awk '{ passed += $4; failed += $6 } END { printf "%d passed, %d failed\n", passed, failed; exit failed != 0 }'
