#!/usr/bin/env bash
# All about the endpoints that are not built in: the unit tests of what those of a language share, their installation, the contract suite, and
# the page with the table in docs/. It goes on after a failure, names all of them at its end, and then ends with status 1. What is installed, and
# what this program has found right, is not done again; so it can be stopped and repeated.
#   EXCEPT=NAME,...   endpoints to leave out, as those whose library cannot be had here
set -uo pipefail
cd "$(dirname "$0")/.."
wirelab=${WIRELAB:-target/release/wirelab}
chosen=(--all ${EXCEPT:+--except "$EXCEPT"})
failed=()

try() { # WHAT COMMAND...
  echo "== $1"
  local begun=$SECONDS status=0
  "${@:2}" || status=$?
  echo "-- $1: $((SECONDS - begun)) s"
  [ $status -ne 130 ] || exit 130 # interrupted
  [ $status -eq 0 ] || failed+=("$1")
}

# In a copy, because packages in the folder would change the identity of all endpoints that are built from it.
test_javascript() {
  rm -rf target/_javascript && mkdir -p target && cp -R endpoints/_javascript target/ &&
    npm ci --prefix target/_javascript --ignore-scripts --no-audit --no-fund && env -C target/_javascript node --test
}

write_page() {
  "$wirelab" endpoints list --markdown >docs/endpoints.md.new && mv docs/endpoints.md.new docs/endpoints.md
}

try "what they need" tests/setup.sh endpoints
try "unit tests: Go" go -C endpoints/_go test ./...
try "unit tests: quic-go" go -C endpoints/go-quic-go test ./...
try "lints: grpc-go" go -C endpoints/go-grpc vet ./...
try "unit tests: grpc-go" go -C endpoints/go-grpc test -tags xds ./...
try "unit tests: Python" env -C endpoints/_python python3 -B -m unittest tests
try "unit tests: JavaScript" test_javascript
try "installation" "$wirelab" endpoints install "${chosen[@]}"
try "contract suite" "$wirelab" endpoints check "${chosen[@]}" --resume
try "the page docs/endpoints.md" write_page

if [ ${#failed[@]} -gt 0 ]; then
  printf 'FAILED: %s\n' "${failed[@]}" >&2
  exit 1
fi
