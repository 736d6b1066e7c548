"""Runs of wirelab: cells, comparisons, trials and samples as data frames."""

from wirelab.program import WirelabError, run
from wirelab.results import DamagedWarning, Frames, Run, open

__all__ = ["DamagedWarning", "Frames", "Run", "WirelabError", "open", "run"]
