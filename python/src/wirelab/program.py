"""Calls the program `wirelab`."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirelab.results import Frames, Run


class WirelabError(Exception):
    """The program failed, or a run lacks what was asked of it. The text is for people."""


class RequirementNotMet(WirelabError):
    """A run is complete, but does not meet a requirement of its study."""

    def __init__(self, message: str, run: Run) -> None:
        super().__init__(message)
        self.run = run


NOT_MET = 3
"""Exit status of the program after a complete run that does not meet a requirement."""


def call(*arguments: str) -> str:
    """Runs the program to its end and returns its standard output.

    The program is the path in the environment variable `WIRELAB`, else the `wirelab` of the search path.
    """
    return _ended(arguments).stdout


def _ended(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    program = os.environ.get("WIRELAB", "wirelab")
    try:
        process = subprocess.Popen(
            [program, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            # A terminal must not interrupt the program as well: a second signal ends it before it has cleaned up.
            process_group=0,
        )
    except FileNotFoundError:
        raise WirelabError(
            f"the program `{program}` is not there; install wirelab, or set WIRELAB to the path of the program"
        ) from None
    interrupt: KeyboardInterrupt | None = None
    while True:
        try:
            output, errors = process.communicate()
            break
        except KeyboardInterrupt as error:
            interrupt = error
            process.send_signal(signal.SIGINT)
    if interrupt is not None:
        raise interrupt
    if process.returncode not in (0, NOT_MET):
        raise WirelabError(errors.strip() or f"wirelab ended with status {process.returncode}")
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


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

    `set` has factors and settings, as `--set KEY=VALUE` of the command line; a list has several levels. The new run
    folder is below `out`. An interrupt is raised after the program has cleaned up; `wirelab resume` continues the run.

    Raises `RequirementNotMet`, which has the run, if the run does not meet a requirement of its study.
    """
    from wirelab.results import open

    before = _folders(out)
    arguments = ["run", os.fspath(study), "--quiet", "--out", os.fspath(out)]
    if preset is not None:
        arguments += ["--preset", preset]
    if lab is not None:
        arguments += ["--lab", lab]
    for key, value in (set or {}).items():
        arguments += ["--set", f"{key}={_written(value)}"]
    ended = _ended(arguments)
    new = sorted(_folders(out) - before)
    if len(new) != 1:
        raise WirelabError(f"{len(new)} new run folders are in {os.fspath(out)}, where one was expected; "
                           "open the right one with `wirelab.open`")
    made = open(new[0], frames=frames)
    if ended.returncode == NOT_MET:
        raise RequirementNotMet(ended.stderr.strip(), made)
    return made


def _written(value: object) -> str:
    """A value as `--set` reads it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(map(_written, value))
    return str(value)


def _folders(parent: str | os.PathLike[str]) -> set[Path]:
    return {manifest.parent for manifest in Path(parent).glob("*/manifest.json")}
