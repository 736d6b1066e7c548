#!/bin/sh
# Moves the debug information of a program to PROGRAM.debug beside it, where perf, gdb, addr2line and Rust's backtraces
# find it (section .gnu_debuglink). Does nothing if the program is stripped already. The program stays the same file, so
# that cargo does not link it again.
#
#     deploy/strip.sh target/release/wirelab
set -eu
program=$1
readelf --sections --wide "$program" | grep -q ' \.debug_line ' || exit 0
objcopy --only-keep-debug --compress-debug-sections=zlib "$program" "$program.debug"
objcopy --strip-all --add-gnu-debuglink="$program.debug" "$program" "$program.stripped"
cat "$program.stripped" > "$program"
rm "$program.stripped"
