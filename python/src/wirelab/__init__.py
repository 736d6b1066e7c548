"""Runs of wirelab: cells, comparisons, trials and samples as data frames."""

from wirelab.program import RequirementNotMet, WirelabError, run
from wirelab.results import DamagedWarning, Frames, Run, open

__all__ = ["DamagedWarning", "Frames", "RequirementNotMet", "Run", "WirelabError", "open", "run"]
