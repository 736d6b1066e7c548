#!/usr/bin/env bash
# Installs nginx, wrk and h2load, builds the load engine alone with full optimisation, and compares processor time per request.
# With BEFORE=PATH the script compares with that earlier build of the example `load` as well.
set -euo pipefail
cd "$(dirname "$0")/../.."

missing=()
command -v wrk >/dev/null || missing+=(wrk)
command -v h2load >/dev/null || missing+=(nghttp2-client)
command -v openssl >/dev/null || missing+=(openssl)
[ -x /usr/sbin/nginx ] || missing+=(nginx-light)
if [ ${#missing[@]} -gt 0 ]; then
  [ "$(id -u)" -eq 0 ] || { echo "missing packages: ${missing[*]}. Remedy: install them" >&2; exit 1; }
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
fi
target="${CARGO_TARGET_DIR:-target}/bench-engine"
CARGO_TARGET_DIR="$target" "${CARGO:-cargo}" build --release --locked -p wirelab-engine --example load
exec python3 tests/bench/engine.py "$target/release/examples/load" "$@"
