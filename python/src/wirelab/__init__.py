"""Runs of wirelab: cells, comparisons, trials and samples as data frames."""

from wirelab.program import WirelabError, run
from wirelab.results import Frames, Run, open

__all__ = ["Frames", "Run", "WirelabError", "open", "run"]
