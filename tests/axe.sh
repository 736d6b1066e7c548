#!/usr/bin/env bash
# Puts axe-core, which checks the accessibility of pages, into the user's cache. The package of PyPI carries the script
# as its project released it; npm, where it comes from, would need Node.js.
set -euo pipefail

package=axe-playwright-python==0.1.8
digest=84494fec757e4710dc751c8d7a636e457f4532f08f85c86dc9070133fbff53bc
script=${XDG_CACHE_HOME:-$HOME/.cache}/wirelab/tools/axe-4.12.1.js
[ -e "$script" ] && exit

echo "installing axe-core 4.12.1 into $script"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip download --quiet --no-deps --dest "$folder" "$package"
python3 -m zipfile -e "$folder"/*.whl "$folder"
echo "$digest  $folder/axe_playwright_python/axe.min.js" | sha256sum --check --quiet
mkdir -p "$(dirname "$script")"
mv "$folder/axe_playwright_python/axe.min.js" "$script"
