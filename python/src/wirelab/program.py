"""Calls the program `wirelab`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirelab.results import Frames, Run


class WirelabError(Exception):
    """The program failed, or a run lacks what was asked of it. The text is for people."""


def call(*arguments: str) -> str:
    """Runs the program to its end and returns its standard output.

    The program is the path in the environment variable `WIRELAB`, else the `wirelab` of the search path.
    """
    program = os.environ.get("WIRELAB", "wirelab")
    try:
        ended = subprocess.run([program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except FileNotFoundError:
        raise WirelabError(
            f"the program `{program}` is not there; install wirelab, or set WIRELAB to the path of the program"
        ) from None
    # 3: the run is complete, but does not meet a requirement of its study.
    if ended.returncode not in (0, 3):
        raise WirelabError(ended.stderr.strip() or f"wirelab ended with status {ended.returncode}")
    return ended.stdout


def run(
    study: str | os.PathLike[str],
    *,
    preset: str | None = None,
    set: Mapping[str, object] | None = None,
    lab: str | None = None,
    out: str | os.PathLike[str] = "wirelab-runs",
    frames: Frames = "pandas",
) -> Run:
    """Runs a study to its end: a built-in one by name, or a study file. Returns the run.

    `set` has factors and settings, as `--set KEY=VALUE` of the command line. The new run folder is below `out`.
    """
    from wirelab.results import open

    before = _folders(out)
    arguments = ["run", os.fspath(study), "--quiet", "--out", os.fspath(out)]
    if preset is not None:
        arguments += ["--preset", preset]
    if lab is not None:
        arguments += ["--lab", lab]
    for key, value in (set or {}).items():
        arguments += ["--set", f"{key}={value}"]
    call(*arguments)
    new = sorted(_folders(out) - before)
    if len(new) != 1:
        raise WirelabError(f"{len(new)} new run folders are in {os.fspath(out)}, where one was expected; "
                           "open the right one with `wirelab.open`")
    return open(new[0], frames=frames)


def _folders(parent: str | os.PathLike[str]) -> set[Path]:
    return {manifest.parent for manifest in Path(parent).glob("*/manifest.json")}
