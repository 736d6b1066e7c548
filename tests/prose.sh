#!/usr/bin/env bash
# The prose linter: Vale with the rules in tests/prose/styles.
#   tests/prose.sh FILE...   checks these files (Markdown, or text)
#   tests/prose.sh           checks every page of the repository and, if the release program is built, the text of its --help
# Ends with status 1 if a rule is broken. `tests/setup.sh prose` installs Vale.
set -euo pipefail
rules=$(cd "$(dirname "$0")" && pwd)/prose
# The glossary is beside the rules where they were copied out of the repository.
glossary=$rules/glossary.md
[ -e "$glossary" ] || glossary=$rules/../../docs/glossary.md
vale=${XDG_CACHE_HOME:-$HOME/.cache}/wirelab/bin/vale
if ! [ -x "$vale" ]; then
  echo "Vale is not installed. Remedy: tests/setup.sh prose" >&2
  exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The rules, with the abbreviations that the glossary defines: bold words of capitals at the start of a row.
cp -R "$rules"/. "$work/rules"
abbreviations() { grep -E "^\| \*\*[A-Z]" "$glossary" | cut -d "|" -f 2 | grep -oE "\*\*[A-Z][A-Z0-9]+\*\*" | tr -d "*" | sort -u; }
abbreviations | sed 's/^/  - /' >>"$work/rules/styles/Wirelab/Abbreviations.yml"

# The help of each command as Markdown: terms and examples are code, each description is a paragraph.
help_pages() { # PROGRAM FOLDER
  local command
  mkdir -p "$2"
  "$1" --help | "$rules"/help-page.py >"$2/wirelab.md"
  for command in $("$1" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p'); do
    [ "$command" = help ] && continue
    subcommands "$1" "$2" "$command"
  done
}
subcommands() { # PROGRAM FOLDER COMMAND...
  local program=$1 folder=$2 text sub
  shift 2
  text=$("$program" "$@" --help)
  "$rules"/help-page.py <<<"$text" >"$folder/wirelab-$(tr ' ' - <<<"$*").md"
  for sub in $(sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p' <<<"$text"); do
    [ "$sub" = help ] || subcommands "$program" "$folder" "$@" "$sub"
  done
}

files=("$@")
if [ $# -eq 0 ]; then
  cd "$rules/../.."
  readarray -t files < <(git ls-files --cached --others --exclude-standard -- \
    README.md ARCHITECTURE.md CONTRIBUTING.md 'docs/*.md' 'studies/*.md' 'contract/*.md' 'endpoints/*README.md' 'tests/*.md')
  program=${WIRELAB:-${CARGO_TARGET_DIR:-target}/release/wirelab}
  if [ -x "$program" ]; then
    help_pages "$program" "$work/help"
    files+=("$work"/help/*.md)
  else
    echo "NOT checked: the text of --help, because $program is not built (make build)"
  fi
fi
"$vale" --config "$work/rules/vale.ini" "${files[@]}"
