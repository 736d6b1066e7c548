#!/usr/bin/env bash
# Runs the tests of the crates with `unsafe` code under AddressSanitizer: reads and writes outside a block of memory, and
# uses of freed memory, end a test with a report. Its runtime is part of the stable compiler; only its option is not, so
# RUSTC_BOOTSTRAP allows it. Code in C is not instrumented.
#
#     sanitize.sh CARGO
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${1:-cargo}
export RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address
# Leaks are no faults of `unsafe` code, and tests end without freeing everything.
export ASAN_OPTIONS=detect_leaks=0
# With an explicit target, build scripts and macros are not instrumented. Two tests count page faults and system calls,
# to which the sanitizer adds its own.
exec "$cargo" test --profile tests --locked --target "$(rustc --print host-tuple)" \
    --target-dir "${CARGO_TARGET_DIR:-target}/sanitize" \
    -p wirelab-engine -p wirelab-endpoint -p wirelab-lab -p wirelab-observe --lib --tests -- \
    --skip a_fault_is_counted_for_each_page --skip strace_counts_the_same_work
