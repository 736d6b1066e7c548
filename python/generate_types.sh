#!/usr/bin/env bash
# Writes the types of the report from its schema: generate_types.sh FILE
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
datamodel-codegen --input "$here/../docs/report.schema.json" --input-file-type jsonschema \
  --output-model-type typing.TypedDict --target-python-version 3.11 --use-title-as-name --disable-timestamp \
  --formatters builtin --custom-file-header '"""The report of a run. Generated from docs/report.schema.json by generate_types.sh."""' \
  --output "$1"
