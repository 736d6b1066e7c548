"""The package against the real program: `WIRELAB` names it (make python)."""

import csv
import io
import math
import os
import subprocess
from pathlib import Path

import pytest

import wirelab
from wirelab.program import call

ROOT = Path(__file__).resolve().parents[2]
ARCHIVE = next((ROOT / "studies/quick/results").iterdir())


@pytest.fixture(scope="module", params=["pandas", "polars"])
def run(request, tmp_path_factory):
    """A run on the lab `fake`, whose results depend on nothing but its seed."""
    out = tmp_path_factory.mktemp("runs")
    return wirelab.run("quick", lab="fake", set={"protocol": "h1,h2"}, out=out, frames=request.param)


def rows(frame):
    """The rows of a frame of either library, as dictionaries."""
    return frame.to_dicts() if hasattr(frame, "to_dicts") else frame.to_dict("records")


def test_the_cells_are_those_of_the_csv_report(run):
    expected = {
        (row["protocol"], row["payload"], row["connection"], row["twin_of"] != "", row["metric"]): row["median"]
        for row in csv.DictReader(io.StringIO(call("report", str(run.folder), "--format", "csv")))
        # The shares of the sides are in the report's `limits`, not with the metrics of cells.
        if row["median"] and not row["metric"].endswith(("client_share", "server_share", "network_share"))
    }
    found = {
        (row["protocol"], row["payload"], row["connection"], row["is_twin"], row["metric"]): row["median"]
        for row in rows(run.cells())
        if row["blocks"] > 0
    }
    assert found.keys() == expected.keys()
    for key, median in found.items():
        assert math.isclose(median, float(expected[key]), rel_tol=1e-9), key


def test_a_metric_without_a_median_has_its_reason(run):
    expected = [why for cell in run.report["cells"] for why in cell["not_measured"].values()]
    found = [row for row in rows(run.cells()) if row["blocks"] == 0]
    assert expected and [row["reason"] for row in found] == expected
    assert all(row["median"] is None or math.isnan(row["median"]) for row in found)


def test_a_comparison_has_its_verdict_and_marks_the_baseline_against_itself(run):
    comparisons = rows(run.comparisons())
    assert len(comparisons) == len(run.report["comparisons"])
    assert {row["is_aa"] for row in comparisons} == {True, False}
    for row in comparisons:
        assert row["verdict"] in ("less", "more", "equivalent", "cannot_tell")
        assert row["is_twin"] == row["is_aa"]


def test_the_median_of_the_samples_is_the_value_of_the_trial(run):
    times = {}
    for sample in rows(run.samples()):
        times.setdefault(sample["trial"], []).append((sample["last_byte_ns"] - sample["intended_ns"], sample))
    trials = rows(run.trials("response_median"))
    assert len(trials) == len(times)
    for trial in trials:
        responses = sorted(times[trial["trial"]], key=lambda pair: pair[0])
        median, sample = responses[math.ceil(len(responses) / 2) - 1]
        assert median == trial["value"], trial
        for key, level in [("block", "block"), ("protocol", "protocol"), ("connection_level", "connection")]:
            assert sample[key] == trial[level], trial


def test_an_archive_has_everything_but_samples():
    run = wirelab.open(ARCHIVE)
    assert "HTTP/2 is slower than HTTP/1.1" in run.headline()
    assert len(run.cells()) > 100
    with pytest.raises(wirelab.WirelabError, match="has no samples: it is an archive"):
        run.samples()


def test_a_plot_has_a_row_for_each_comparison_and_is_saved_as_pdf(tmp_path):
    import matplotlib

    matplotlib.use("agg")
    run = wirelab.open(ARCHIVE)
    axes = run.plot("response_p90")
    compared = [one for one in run.report["comparisons"] if one["metric"] == "response_p90"]
    assert len(axes.get_yticklabels()) == len(compared)
    axes.figure.savefig(tmp_path / "ratios.pdf", bbox_inches="tight")
    assert (tmp_path / "ratios.pdf").read_bytes().startswith(b"%PDF")


def test_mistakes_say_what_to_do(tmp_path, monkeypatch):
    run = wirelab.open(ARCHIVE)
    for wrong, message in [
        (lambda: run.trials("respnse_median"), "the run has not measured `respnse_median`; it has .*response_median"),
        (lambda: run.plot("nothing"), "the run compares no cell by `nothing`"),
        (lambda: wirelab.open(tmp_path), "is no run: it has no manifest.json"),
        (lambda: wirelab.open(ARCHIVE, frames="arrow"), "it may be `pandas` or `polars`"),
        (lambda: wirelab.run("quik", out=tmp_path), "did you mean `quick`"),
    ]:
        with pytest.raises(wirelab.WirelabError, match=message):
            wrong()
    monkeypatch.setenv("WIRELAB", "/nowhere/wirelab")
    with pytest.raises(wirelab.WirelabError, match="set WIRELAB to the path of the program"):
        wirelab.open(ARCHIVE).cells()


def test_the_types_are_those_of_the_schema(tmp_path):
    new = tmp_path / "report.py"
    subprocess.run([ROOT / "python/generate_types.sh", new], check=True, capture_output=True)
    current = ROOT / "python/src/wirelab/report.py"
    assert new.read_text() == current.read_text(), "run python/generate_types.sh python/src/wirelab/report.py"


def test_the_example_runs(tmp_path):
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(ROOT / "python/examples/quick.ipynb", as_version=4)
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path}})
    client.execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in outputs), "the notebook draws"
    assert os.listdir(tmp_path / "wirelab-runs")


def test_a_factor_called_like_a_column_keeps_both():
    from wirelab.results import _row

    cell = {"levels": {"metric": "taxi", "protocol": "h1"}, "twin_of": None}
    row = _row(cell, {"metric": "response_median", "median": 1.0})
    assert row == {
        "metric_level": "taxi", "protocol": "h1", "is_twin": False, "metric": "response_median", "median": 1.0,
    }
