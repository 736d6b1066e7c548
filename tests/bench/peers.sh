#!/usr/bin/env bash
# Installs the peers and compares the load generator with them: wrk from Debian, h2load and nginx with HTTP/3 from Debian sid
# (http3.sh), oha from crates.io and ghz by Go, all but wrk into the user's cache. As root it measures in a network
# namespace of its own, whose loopback device gets the MTU of a load.
set -euo pipefail
cd "$(dirname "$0")/../.."
cache="${XDG_CACHE_HOME:-$HOME/.cache}/wirelab/peers"

missing=()
command -v wrk >/dev/null || missing+=(wrk)
command -v openssl >/dev/null || missing+=(openssl)
if [ ${#missing[@]} -gt 0 ]; then
  [ "$(id -u)" -eq 0 ] || { echo "missing packages: ${missing[*]}. Remedy: install them" >&2; exit 1; }
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
fi
# A peer that cannot be installed is not measured, and the table says so.
tests/bench/http3.sh "$cache" || echo "h2load and nginx with HTTP/3 were not installed" >&2
[ -x "$cache/bin/oha" ] || nice cargo install oha --version 1.16.0 --features http3 --locked --root "$cache" || echo "oha was not installed" >&2
[ -x "$cache/bin/ghz" ] || GOBIN="$cache/bin" nice go install github.com/bojand/ghz/cmd/ghz@v0.120.0 || echo "ghz was not installed" >&2

measure=(python3 tests/bench/peers.py --json target/bench-peers.json "$@")
if [ "$(id -u)" -eq 0 ]; then
  exec unshare --net sh -ec 'ip link set lo up; exec "$@"' sh "${measure[@]}"
fi
exec "${measure[@]}"
