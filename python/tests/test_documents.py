"""The examples of docs/results.md, on a real run."""

import re
import statistics
from pathlib import Path

import duckdb
import pyarrow.parquet
import pytest

import wirelab

DOCUMENT = Path(__file__).resolve().parents[2] / "docs/results.md"


def example(language):
    """The first example in a language."""
    return re.search(rf"^```{language}\n(.*?)^```", DOCUMENT.read_text(), re.DOTALL | re.MULTILINE).group(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    return wirelab.run("quick", lab="fake", set={"protocol": "h1,h2"}, out=out).folder


def test_the_query_gives_the_median_over_trials_of_each_cell(folder, monkeypatch):
    monkeypatch.chdir(folder)
    medians = {}
    for path in sorted(Path("samples").glob("*.parquet")):
        rows = [row for row in pyarrow.parquet.read_table(path).to_pylist() if row["error"] is None]
        times = [(row["last_byte_ns"] - row["intended_ns"]) / 1e6 for row in rows]
        medians.setdefault(rows[0]["cell"], []).append(statistics.median(times))
    found = duckdb.sql(example("sql")).fetchall()
    assert [(cell, trials) for cell, trials, _ in found] == [(cell, len(medians[cell])) for cell in sorted(medians)]
    for cell, _, median in found:
        assert median == pytest.approx(statistics.median(medians[cell]))


def test_samples_and_journal_agree_in_pandas(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    exec(example("python"), {})  # noqa: S102 - the text is ours
    numbers = re.findall(r"^h[12] +([0-9.]+)$", capsys.readouterr().out, re.MULTILINE)
    assert len(numbers) == 4, "two protocols, from the samples and from the journal"
    samples, journal = numbers[:2], numbers[2:]
    for one, other in zip(samples, journal):
        # Nearest rank and interpolation differ by a request.
        assert float(one) == pytest.approx(float(other), rel=0.05)
