"""Samples leave out what the report leaves out, so that no pooled number contains it."""

import gzip
import hashlib
import json
import os
import shutil
import warnings
from pathlib import Path

import pytest

import wirelab
from wirelab import journal


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run that no test changes."""
    return wirelab.run("quick", lab="fake", preset="smoke", set={"payload": "1 KiB"}, out=tmp_path_factory.mktemp("runs"))


@pytest.fixture
def copy(made, tmp_path):
    """The folder of a run that a test may change."""
    return Path(shutil.copytree(made.folder, tmp_path / "copy"))


def trials_in_samples(folder, frames="polars"):
    return set(wirelab.open(folder, frames=frames).samples()["trial"])


def all_trials(made):
    return {trial["number"] for trial in made._trials()}


def sealed(entry):
    """A line of the journal with its checksum."""
    content = json.dumps(entry).encode()[:-1]
    return content + b',"checksum":"' + hashlib.sha256(content).hexdigest()[:16].encode() + b'"}\n'


@pytest.mark.parametrize("frames", ["pandas", "polars"])
def test_the_trials_of_the_samples_are_the_successful_ones_of_the_report(made, copy, frames):
    correction = {"entry": "corrected", "number": 5, "outcome": "failed", "blame": "lab", "reason": "why", "at": "then"}
    path = copy / "journal.jsonl"
    path.write_bytes(path.read_bytes() + sealed(correction))
    assert trials_in_samples(copy, frames) == all_trials(made) - {5}
    assert sum(cell["ok"] for cell in wirelab.open(copy).report["cells"]) == len(all_trials(made)) - 1


def test_a_damaged_line_is_left_out_and_a_torn_one_is_no_damage(made, copy):
    path = copy / "journal.jsonl"
    content = path.read_bytes()
    path.write_bytes(content + b'{"entry":"trial","numb')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert trials_in_samples(copy) == all_trials(made)
    at, line = next((at, line) for at, line in enumerate(content.split(b"\n"), 1) if b'"trial"' in line)
    path.write_bytes(content.replace(line, line.replace(b'"took_ns":', b'"took_ns":9', 1)))
    with pytest.warns(wirelab.DamagedWarning, match=rf"damaged lines of the journal are left out: \[{at}\]"):
        assert trials_in_samples(copy) == all_trials(made) - {json.loads(line)["number"]}


def test_the_samples_of_a_repeated_record_count_once(made, copy):
    path = copy / "journal.jsonl"
    line = next(line for line in path.read_bytes().split(b"\n") if b'"trial"' in line)
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.warns(wirelab.DamagedWarning, match="repeated"):
        assert len(wirelab.open(copy).samples()) == len(made.samples())


def test_damaged_and_absent_files_and_links_to_others_are_left_out(made, copy):
    swapped, absent, linked, other = sorted((copy / "samples").iterdir())[:4]
    shutil.copy(other, swapped)
    absent.unlink()
    linked.unlink()
    os.symlink(other, linked)
    with pytest.warns(wirelab.DamagedWarning) as warned:
        left = trials_in_samples(copy)
    assert [Path(str(one.message).split(": ")[1].split(" ")[0]).name for one in warned] == [
        swapped.name, absent.name, linked.name]
    assert left == all_trials(made) - {int(path.stem.removeprefix("trial-")) for path in (swapped, absent, linked)}


def test_a_path_in_the_journal_leads_to_no_file_outside_of_the_run(made, copy):
    outside = copy.parent / "outside.parquet"
    shutil.copy(next((copy / "samples").iterdir()), outside)
    record = next(trial for trial in made._trials()) | {"results": str(outside), "number": 999}
    path = copy / "journal.jsonl"
    path.write_bytes(path.read_bytes() + sealed({key: record[key] for key in record if key != "checksum"}))
    with pytest.warns(wirelab.DamagedWarning, match="no file of the run"):
        assert len(wirelab.open(copy).samples()) == len(made.samples())


def test_a_link_out_of_tolerance_spoils_the_blocks_before_and_after_the_measurement():
    link = {"rate": "10 Mbit/s"}
    check = {"entry": "links", "block": 2, "links": [{"link": link, "miss": "too slow"}]}
    trials = [{"entry": "trial", "number": block, "block": block, "cell": 0, "outcome": "ok"} for block in range(4)]

    def outcomes(of_cell):
        return [trial["outcome"] for trial in journal.trials([*trials, check], [of_cell])]

    assert outcomes(link) == ["ok", "failed", "failed", "ok"]
    assert outcomes(None) == outcomes({"rate": "20 Mbit/s"}) == ["ok"] * 4


def test_a_line_without_a_checksum_counts_only_before_those_with_one(tmp_path):
    plain = b'{"entry":"started","at":"x"}\n'
    parsed = journal.parse(plain + sealed({"entry": "started", "at": "x"}) + plain, tmp_path)
    assert (len(parsed.entries), parsed.damaged_lines) == (2, [3])


def test_an_unreadable_journal_is_named(tmp_path):
    path = tmp_path / "journal.jsonl.gz"
    path.write_bytes(b"\x1f\x8b cut off")
    with pytest.raises(wirelab.WirelabError, match="cannot read the journal"):
        journal.read(tmp_path)
    path.write_bytes(gzip.compress(b'["no entry"]\n'))
    with pytest.raises(wirelab.WirelabError, match="line 1: not an entry"):
        journal.read(tmp_path)
