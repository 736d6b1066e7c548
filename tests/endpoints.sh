#!/usr/bin/env bash
# Checks the endpoints that are not built in: unit tests of the code that the endpoints of a language share, installation
# and contract suite. Then it writes the table docs/endpoints.md. It continues after a failure, names all failures at the
# end, and ends with status 1. A repeated run skips installed endpoints, and endpoints that this program found right.
#   EXCEPT=NAME,...   endpoints to omit, for example because their library is not available
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

# Tests a copy, because packages in the folder would change the identity of all endpoints built from it.
test_javascript() {
  rm -rf target/_javascript && mkdir -p target && cp -R endpoints/_javascript target/ &&
    npm ci --prefix target/_javascript --ignore-scripts --no-audit --no-fund && env -C target/_javascript node --test
}

write_page() {
  "$wirelab" endpoints list --markdown >docs/endpoints.md.new && mv docs/endpoints.md.new docs/endpoints.md
}

try "packages" tests/setup.sh endpoints
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
