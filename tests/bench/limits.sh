#!/usr/bin/env bash
# Measures memory, connections and lag of the load generator, in a network namespace of its own, whose ports are all free.
# 50,000 connections need as many descriptors on both sides, which root may be allowed to have; otherwise there are fewer.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ "$(id -u)" -eq 0 ]; then
  ulimit -n 120000 2>/dev/null || ulimit -n "$(ulimit -Hn)"
  apart=(unshare --net)
else
  apart=(unshare --map-root-user --net)
fi
exec "${apart[@]}" sh -ec '
  ip link set lo up
  echo "1024 65535" > /proc/sys/net/ipv4/ip_local_port_range
  exec python3 tests/bench/limits.py "$@"' sh "$@"
