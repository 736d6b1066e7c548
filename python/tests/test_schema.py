"""Reports keep the schema, also those of runs that an older wirelab measured."""

import json
from pathlib import Path

import jsonschema
import pytest

import wirelab
from wirelab.program import call

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "docs/report.schema.json").read_text())
ARCHIVES = sorted(path.parent for path in ROOT.glob("studies/*/results/*/manifest.json"))


@pytest.mark.parametrize("folder", ARCHIVES, ids=lambda folder: f"{folder.parent.parent.name}-{folder.name}")
def test_the_report_of_an_archived_run_is_valid(folder):
    jsonschema.validate(wirelab.open(folder).report, SCHEMA)


def test_the_report_of_a_table_is_valid():
    jsonschema.validate(json.loads(call("analyze", "page-load", "--format", "json")), SCHEMA)


def test_a_value_without_its_trial_is_not_valid():
    report = json.loads(json.dumps(wirelab.open(ARCHIVES[0]).report))
    report["cells"][0]["estimates"]["response_median"]["values"][0] = [1]
    with pytest.raises(jsonschema.ValidationError, match="too short"):
        jsonschema.validate(report, SCHEMA)
