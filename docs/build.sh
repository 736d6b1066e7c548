#!/usr/bin/env bash
# Builds the documentation as a web site in target/docs/book, with a gallery of reports that the release program makes.
#   WIRELAB=PROGRAM   default: target/release/wirelab
set -euo pipefail
cd "$(dirname "$0")/.."
wirelab=$(realpath "${WIRELAB:-target/release/wirelab}")
site=target/docs
version=0.5.4
cache=${XDG_CACHE_HOME:-$HOME/.cache}/wirelab
mdbook=$cache/bin/mdbook

# Compiling takes about five minutes of processor time, once for each user.
if ! [ -x "$mdbook" ] || [ "$("$mdbook" --version)" != "mdbook v$version" ]; then
  echo "installing mdBook $version into $cache/bin"
  cargo install mdbook --version "$version" --locked --no-default-features --features search --root "$cache"
fi

# The pages keep their places, so that links between them stay right; files that pages link to are copied too.
rm -rf "$site/src" "$site/book"
mkdir -p "$site/src" "$site/gallery"
find README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md LICENSE-* docs contract studies endpoints python deploy/ci tests/browsertime \
  \( -name node_modules -o -name __pycache__ -o -name target \) -prune -o \
  -type f \( -name '*.md' -o -name '*.svg' -o -name '*.png' -o -name '*.toml' -o -name '*.json' -o -name '*.jsonl' -o -name '*.csv' -o -name '*.ipynb' -o -name '*.proto' -o -name '*.yml' -o -name 'LICENSE-*' \) \
  -exec cp --parents {} "$site/src" \;
cp docs/book.toml "$site/book.toml"

# A list of pages below a line of SUMMARY.md.
children() { # LINE, pages on standard input
  local page
  grep -F -- "$1" docs/SUMMARY.md
  while read -r page; do
    echo "  - [$(sed -n 's/^##\? //p' "$page" | head -1 | tr -d '`[]')](../$page)"
  done
}
{
  while IFS= read -r line; do
    case $line in
      *'](decisions.md)') printf '%s\n' docs/decisions/*.md | children "$line" ;;
      *'](../studies/README.md)') find studies -mindepth 2 -name README.md | sort | children "$line" ;;
      *'](gallery.md)') printf '%s\n' studies/*/results/*/report.md | children "$line" ;;
      *'](endpoints.md)') printf '%s\n' endpoints/*/README.md | grep -v _template | children "$line" ;;
      *) echo "$line" ;;
    esac
  done <docs/SUMMARY.md
} | sed -e 's#](#](docs/#' -e 's#](docs/\.\./#](#' >"$site/src/SUMMARY.md"
rm "$site/src/docs/SUMMARY.md"

# Reports are made once; `make clean` or removing target/docs/gallery makes them again.
report() { # NAME COMMAND...
  local page=$site/gallery/$1.html
  if ! [ -s "$page" ]; then
    echo "the report $1"
    "${@:2}" >"$page.new"
    mv "$page.new" "$page"
  fi
}
run() { # ARGUMENTS of wirelab run
  local runs
  runs=$(mktemp --directory --tmpdir="$site")
  "$wirelab" run "$@" --quiet --out "$runs" >/dev/null
  "$wirelab" report --out "$runs" --format html
  rm -rf "$runs"
}
for archive in studies/*/results/*/; do
  study=$(basename "$(dirname "$(dirname "$archive")")")
  report "$study-$(basename "$archive")" "$wirelab" report "$archive" --format html
done
report analyze-page-load "$wirelab" analyze page-load --format html
report null run null --lab fake
mkdir -p "$site/src/docs/gallery"
cp "$site"/gallery/*.html "$site/src/docs/gallery/"
sed -i 's#^<!-- report: \(.*\) -->#[Open the report](gallery/\1.html)\n\n<iframe src="gallery/\1.html" title="\1" width="100%" height="600" loading="lazy"></iframe>#' \
  "$site/src/docs/gallery.md"

"$mdbook" build "$site"
# mdBook names the page of a README.md index.html, and leaves links to it; a web server has no page for a folder.
while read -r page; do
  cp "$page" "$(dirname "$page")/README.html"
done < <(find "$site/book" -name index.html)
for folder in "$site/book/contract/schema" "$site/book/contract/examples"; do
  list=$(cd "$folder" && for file in *; do echo "<li><a href=\"$file\">$file</a></li>"; done)
  echo "$list" >"$folder/index.html"
done
docs/check-site.py "$site/book"
echo "the documentation is in $site/book/index.html"
