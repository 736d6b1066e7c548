#!/usr/bin/env bash
# Installs nginx, builds the null server and the load engine with full optimisation, and compares the server's processor time.
set -euo pipefail
cd "$(dirname "$0")/../.."

[ -x /usr/sbin/nginx ] || { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends nginx-light; }
target="${CARGO_TARGET_DIR:-target}/bench-engine"
CARGO_TARGET_DIR="$target" "${CARGO:-cargo}" build --release --locked -p wirelab-engine --examples
exec python3 tests/bench/null_server.py "$target/release/examples/null" "$target/release/examples/load"
