#!/usr/bin/env bash
# The prose linter: Vale with the rules in tests/prose/styles.
#   tests/prose.sh FILE...   checks these files (Markdown, or text)
#   tests/prose.sh           checks every page of the repository; docs/reference has the text of --help
# Ends with status 1 if a rule is broken. `tests/setup.sh prose` installs Vale.
set -euo pipefail
rules=$(cd "$(dirname "$0")" && pwd)/prose
glossary=$rules/../../docs/glossary.md
vale=${XDG_CACHE_HOME:-$HOME/.cache}/wirelab/bin/vale
if ! [ -x "$vale" ]; then
  echo "Vale is not installed. Remedy: tests/setup.sh prose" >&2
  exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The rules, with the abbreviations that the glossary defines: bold words in capitals in the first column of its table.
cp -R "$rules"/. "$work/rules"
grep -E '^\| \*\*[A-Z]' "$glossary" | cut -d '|' -f 2 | grep -oE '\*\*[A-Z][A-Z0-9]+\*\*' | tr -d '*' | sort -u |
  sed 's/^/  - /' >>"$work/rules/styles/Wirelab/Abbreviations.yml"

files=("$@")
if [ $# -eq 0 ]; then
  cd "$rules/../.."
  # Not by git: an archive of the sources has no history.
  readarray -t files < <(find README.md ARCHITECTURE.md CONTRIBUTING.md docs studies contract endpoints tests \
    -name node_modules -prune -o -name '*.md' -print | sort)
fi
"$vale" --config "$work/rules/vale.ini" "${files[@]}"
