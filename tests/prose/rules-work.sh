#!/usr/bin/env bash
# Each rule of the prose linter finds a text that breaks it, and none finds a fault in a text that keeps all.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
words() { printf 'word %.0s' $(seq "$1"); }

finds() { # RULE TEXT
  printf '# Title\n\n%s\n' "$2" >"$work/page.md"
  # No pipe: grep -q would end the linter early.
  ./prose.sh "$work/page.md" >"$work/found" && status=0 || status=$?
  if [ $status -ne 1 ] || ! grep -qF "Wirelab.$1" "$work/found"; then
    echo "the rule $1 does not find: $2" >&2
    exit 1
  fi
}
finds Phrases 'A page says what nobody knows.'
finds Phrases 'The server, of which the client knows the name, answers.'
finds Phrases 'Those that answer are counted.'
finds Phrases 'The client is told to begin.'
finds Openings 'There is a server.'
finds Openings 'The first one answers. It is QUIC that waits.'
finds SentenceLength "This $(words 35)ends."
finds AverageSentence "$(for _ in 1 2 3; do echo "This $(words 25)ends."; done)"
finds LineLength "$(words 12). $(words 13)"
finds Abbreviations 'The XQZ answers.'

{
  printf '# Title\n\n%s\n%s.\n%s\n\n' "$(words 20)" "$(words 15)" 'The next one has TCP, forward error correction (FEC), and again FEC.'
  printf '    %s\n\n' "a code block of more than 120 columns, of which nobody says anything: $(words 20)"
  printf '| a |\n|---|\n| %s |\n\n' "A table with a long line. $(words 15). $(words 15)."
  printf 'See %s.\n' "https://example.org/of-which/a-path-of-more-than-sixty-columns/that-no-line-break-can-divide/because-it-is-one-word"
} >"$work/good.md"
./prose.sh "$work/good.md" >"$work/found" || {
  cat "$work/found" >&2
  exit 1
}
