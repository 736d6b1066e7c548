#!/usr/bin/env bash
# Makes the pictures of the gallery again: the first screen of the report of each archived run, in docs/gallery.
#   WIRELAB=PROGRAM   default: target/release/wirelab
# Needs Chromium.
set -euo pipefail
cd "$(dirname "$0")/.."
wirelab=$(realpath "${WIRELAB:-target/release/wirelab}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p docs/gallery

for archive in studies/*/results/*/; do
  study=$(basename "$(dirname "$(dirname "$archive")")")
  name=$study-$(basename "$archive")
  "$wirelab" report "$archive" --format html >"$folder/$name.html"
  HOME=$folder timeout 120 chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --window-size=1280,800 \
    --force-color-profile=srgb --user-data-dir="$folder/profile" --screenshot="$folder/$name.png" \
    "file://$folder/$name.html" 2>/dev/null
  mv "$folder/$name.png" "docs/gallery/$name.png"
  echo "docs/gallery/$name.png"
done
