"""The journal of a run: one JSON object per line, by the rules of docs/results.md."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wirelab.program import WirelabError

CHECKSUM = re.compile(rb',"checksum":"([0-9a-f]{16})"}$')

PACKED = "journal.jsonl.gz"


def is_packed(folder: Path) -> bool:
    """Whether the folder is an archive of a run."""
    return (folder / PACKED).is_file()


@dataclass
class Journal:
    """The entries of a journal without damaged and repeated records."""

    entries: list[dict[str, Any]] = field(default_factory=list)
    damaged_lines: list[int] = field(default_factory=list)
    """Numbers of lines whose checksum is wrong or missing, counted from 1."""
    repeated_lines: list[int] = field(default_factory=list)
    """Numbers of lines with a trial that an earlier line has."""


def read(folder: Path) -> Journal:
    """Reads the journal of a run folder or of an archive. A run that has no trial yet may have none."""
    packed, plain = folder / PACKED, folder / "journal.jsonl"
    try:
        if is_packed(folder):
            return parse(gzip.decompress(packed.read_bytes()), packed)
        return parse(plain.read_bytes(), plain) if plain.is_file() else Journal()
    except (OSError, EOFError, zlib.error) as error:
        raise WirelabError(f"cannot read the journal of {folder}: {error}") from error


def parse(content: bytes, path: Path) -> Journal:
    """Parses a journal. A last line without its line feed was cut off by a kill and does not count."""
    journal, trials, is_verified = Journal(), set[int](), False
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        seal = CHECKSUM.search(line)
        is_right = seal is not None and hashlib.sha256(line[: seal.start()]).hexdigest()[:16].encode() == seal.group(1)
        # Older versions wrote no checksums. Their records come first.
        if not is_right and (seal is not None or is_verified):
            journal.damaged_lines.append(number)
            continue
        is_verified = is_verified or is_right
        try:
            entry = json.loads(line)
            is_trial = entry["entry"] == "trial"
            if is_trial and entry["number"] in trials:
                journal.repeated_lines.append(number)
                continue
            if is_trial:
                trials.add(entry["number"])
        except (ValueError, TypeError, KeyError) as error:
            raise WirelabError(f"{path}, line {number}: not an entry of a journal: {error!r}") from error
        journal.entries.append(entry)
    return journal


def trials(entries: list[dict[str, Any]], links: list[Any]) -> list[dict[str, Any]]:
    """The trials of the plan, with their outcomes after corrections. `links` has the link of each cell, or `None`."""
    found = [dict(entry) for entry in entries if entry["entry"] == "trial"]
    by_number = {trial["number"]: trial for trial in found}
    for check in (entry for entry in entries if entry["entry"] == "links"):
        for trial in found:
            # Journals of older versions do not correct the outcomes of trials over a link out of tolerance.
            if trial["outcome"] == "ok" and (miss := missed(check, trial, links)) is not None:
                trial.update(outcome="failed", blame="lab", reason=miss)
    for entry in entries:
        if entry["entry"] == "corrected" and entry["number"] in by_number:
            outcome = {key: value for key, value in entry.items() if key not in ("entry", "number", "at", "checksum")}
            by_number[entry["number"]].update(outcome)
    return found


def missed(check: dict[str, Any], trial: dict[str, Any], links: list[Any]) -> str | None:
    """Why a trial does not count: its link was out of tolerance before its block, or before the next one."""
    link = links[trial["cell"]]
    if link is None or check["block"] not in (trial["block"], trial["block"] + 1):
        return None
    record = next((record for record in check["links"] if record["link"] == link), None)
    return None if record is None else record.get("miss")
