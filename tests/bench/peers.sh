#!/usr/bin/env bash
# Installs the peers and compares the load generator with them: Debian packages for wrk and h2load, and oha from crates.io
# into the user's cache.
set -euo pipefail
cd "$(dirname "$0")/../.."
cache="${XDG_CACHE_HOME:-$HOME/.cache}/wirelab/peers"

if [ "$(id -u)" -eq 0 ]; then
  missing=()
  command -v wrk >/dev/null || missing+=(wrk)
  command -v h2load >/dev/null || missing+=(nghttp2-client)
  command -v openssl >/dev/null || missing+=(openssl)
  [ ${#missing[@]} -eq 0 ] || { apt-get update -q; DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"; }
else
  command -v wrk h2load openssl >/dev/null || echo "wrk, nghttp2-client or openssl is missing. Remedy: install these packages" >&2
fi
[ -x "$cache/bin/oha" ] || nice cargo install oha --version 1.16.0 --features http3 --locked --root "$cache"

wrk --version 2>/dev/null | head -1 || true
h2load --version 2>/dev/null || true
"$cache/bin/oha" --version
exec python3 tests/bench/peers.py "$@"
