#!/usr/bin/env bash
# Installs what the tests need beyond a Rust toolchain: a C compiler (for ring) and python3 (for endpoints/_template).
# With root it installs Debian packages; without, it names what is missing.
set -euo pipefail

packages=()
command -v cc >/dev/null || packages+=(gcc libc6-dev)
command -v python3 >/dev/null || packages+=(python3-minimal)
if [ ${#packages[@]} -gt 0 ]; then
  if [ "$(id -u)" -ne 0 ]; then
    echo "missing: ${packages[*]}. Remedy: sudo apt-get install ${packages[*]}" >&2
    exit 1
  fi
  echo "installing ${packages[*]}"
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${packages[@]}"
fi

if ! cargo fmt --version >/dev/null 2>&1 || ! cargo clippy --version >/dev/null 2>&1; then
  echo "installing rustfmt and clippy"
  rustup component add rustfmt clippy
fi
echo "complete: $(cc --version | head -1), $(python3 --version), $(rustc --version)"
