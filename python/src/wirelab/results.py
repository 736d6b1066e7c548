"""The results of one run."""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import os
import warnings
from collections.abc import Collection
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from wirelab import journal
from wirelab.program import WirelabError, call

if TYPE_CHECKING:
    from wirelab.report import Cell, WirelabReportVersion1

Frames = Literal["pandas", "polars"]


class DamagedWarning(UserWarning):
    """A record or a file of a run is damaged, repeated or absent, and was left out."""


def open(folder: str | os.PathLike[str], *, frames: Frames = "pandas") -> Run:
    """Opens a run folder or an archive. `frames` is the library of its data frames."""
    path = Path(folder)
    if not (path / "manifest.json").is_file():
        raise WirelabError(f"{path} is no run: it has no manifest.json")
    if frames not in ("pandas", "polars"):
        raise WirelabError(f"frames is `{frames}`; it may be `pandas` or `polars`")
    return Run(path, frames)


class Run:
    """A run. Its folder is read when a value is first asked for."""

    def __init__(self, folder: Path, frames: Frames) -> None:
        self.folder = folder
        self.frames = frames

    def __repr__(self) -> str:
        return f"wirelab.open({str(self.folder)!r})"

    @cached_property
    def report(self) -> WirelabReportVersion1:
        """The report, as `wirelab report --format json` prints it."""
        report: WirelabReportVersion1 = json.loads(call("report", str(self.folder), "--format", "json"))
        if report["schema_version"] != 1:
            raise WirelabError(f"the report has version {report['schema_version']} of the schema; this package knows 1")
        return report

    def headline(self) -> str:
        """The first paragraph of the report as the terminal shows it."""
        return call("report", str(self.folder)).strip().split("\n\n")[0]

    def cells(self) -> Any:
        """Median and interval of each metric, one row for each cell and metric.

        A metric without a median has a `reason`: it was not measured, or not in every trial, or it was infinite.
        """
        units = {metric["name"]: metric["unit"] for metric in self.report["metrics"]}
        rows: list[dict[str, Any]] = []
        for cell in self.report["cells"]:
            for name, estimate in cell["estimates"].items():
                facts = {"median": estimate["median"], **_interval(estimate["interval"]), "blocks": len(estimate["values"])}
                rows.append(_row(cell, {"metric": name, "unit": units.get(name), **facts, "reason": None}))
            for name, why in cell["not_measured"].items():
                facts = {"median": None, **_interval(None), "blocks": 0}
                rows.append(_row(cell, {"metric": name, "unit": units.get(name), **facts, "reason": why}))
        return self._frame(rows)

    def comparisons(self) -> Any:
        """Each cell against its baseline, one row for each metric. `is_aa` marks a baseline against itself."""
        cells = self.report["cells"]
        return self._frame(
            _row(cells[one["cell"]], {
                "metric": one["metric"],
                "ratio": one["ratio"],
                **_interval(one["interval"]),
                "p": one["p"],
                "p_holm": one["p_holm"],
                "verdict": one["verdict"]["verdict"],
                "why": one["verdict"].get("why"),
                "is_aa": one["aa"],
            })
            for one in self.report["comparisons"]
        )

    def trials(self, metric: str) -> Any:
        """The values of a metric, one row for each trial, with its number and its block."""
        known = {name for cell in self.report["cells"] for name in cell["estimates"]}
        if metric not in known:
            raise WirelabError(f"the run has not measured `{metric}`; it has {', '.join(sorted(known))}")
        blocks = {trial["number"]: trial["block"] for trial in self._trials()}
        return self._frame(
            _row(cell, {"trial": trial, "block": blocks[trial], "value": value})
            for cell in self.report["cells"]
            if metric in cell["estimates"]
            for trial, value in cell["estimates"][metric]["values"]
        )

    def samples(self) -> Any:
        """Single requests of all completed trials, one row each, with the levels of their cell.

        Trials that the report leaves out are left out here. A damaged or absent file is left out with a
        `DamagedWarning`.
        """
        if journal.is_packed(self.folder):
            raise WirelabError(f"{self.folder} has no samples: it is an archive")
        recorded = [trial for trial in self._trials() if (trial.get("results") or "").endswith(".parquet")]
        parts = [part for part in map(self._samples_of, recorded) if part is not None]
        if not parts:
            raise WirelabError(f"{self.folder} has no samples: no completed trial recorded single requests")
        library = self._library()
        return library.concat(parts) if self.frames == "polars" else library.concat(parts, ignore_index=True)

    def plot(self, metric: str | None = None) -> Any:
        """Draws the ratios of a metric to the baseline, with intervals, and returns the axes of matplotlib.

        Without `metric` it draws the first one that the study compares. The band is the noise floor.
        """
        import matplotlib.pyplot as plt

        metric = metric or self.report["comparisons"][0]["metric"]
        rows = [one for one in self.report["comparisons"] if one["metric"] == metric and one["ratio"] is not None]
        if not rows:
            raise WirelabError(f"the run compares no cell by `{metric}`")
        labels = [self.report["cells"][one["cell"]]["label"] + (" (A/A)" if one["aa"] else "") for one in rows]
        _, axes = plt.subplots(figsize=(8, 0.4 * len(rows) + 1.2))
        for position, one in enumerate(rows):
            if one["interval"] is not None:
                axes.plot([one["interval"]["low"], one["interval"]["high"]], [position, position], color="tab:blue")
            if one["noise_floor"] is not None:
                axes.fill_betweenx(
                    [position - 0.4, position + 0.4], one["noise_floor"]["low"], one["noise_floor"]["high"],
                    color="tab:gray", alpha=0.2,
                )
            axes.plot(one["ratio"], position, "o", color="tab:blue")
        axes.axvline(1, color="black", linewidth=0.8)
        axes.set(xscale="log", yticks=range(len(rows)), xlabel=f"{metric}: ratio to the baseline")
        axes.set_yticklabels(labels)
        axes.invert_yaxis()
        return axes

    def _trials(self) -> list[dict[str, Any]]:
        """The successful trials."""
        contents = journal.read(self.folder)
        for what, lines in ("damaged", contents.damaged_lines), ("repeated", contents.repeated_lines):
            if lines:
                self._warn(f"{what} lines of the journal are left out: {lines}")
        plan = json.loads((self.folder / "manifest.json").read_bytes())["plan"]
        links = [cell["job"].get("link") for cell in plan["cells"]]
        return [trial for trial in journal.trials(contents.entries, links) if trial["outcome"] == "ok"]

    def _samples_of(self, trial: dict[str, Any]) -> Any:
        """The samples of a trial with its levels; `None` if their file is damaged or absent."""
        library = self._library()
        # Only files of the run itself, whatever path the journal contains.
        path = self.folder / "samples" / Path(trial["results"]).name
        if path.is_symlink() or not path.is_file():
            return self._warn(f"{trial['results']} is no file of the run, and is left out")
        content = path.read_bytes()
        if trial.get("results_sha256") not in (None, hashlib.sha256(content).hexdigest()):
            return self._warn(f"{trial['results']} is damaged, and is left out")
        frame = library.read_parquet(io.BytesIO(content))
        facts = _levels(self.report["cells"][trial["cell"]], frame.columns)
        if self.frames == "polars":
            return frame.with_columns(**{key: library.lit(value) for key, value in facts.items()})
        return frame.assign(**facts)

    def _warn(self, what: str) -> None:
        warnings.warn(f"{self.folder}: {what}", DamagedWarning, stacklevel=4)

    def _frame(self, rows: Any) -> Any:
        library = self._library()
        # polars infers types from all rows: a column may begin with missing values.
        options = {"infer_schema_length": None} if self.frames == "polars" else {}
        return library.DataFrame(list(rows), **options)

    def _library(self) -> Any:
        try:
            return importlib.import_module(self.frames)
        except ImportError as error:
            raise WirelabError(f"data frames need {self.frames}: pip install 'wirelab[{self.frames}]'") from error


def _levels(cell: Cell, columns: Collection[str]) -> dict[str, Any]:
    """The levels of a cell, and whether it is the A/A twin of another cell.

    A factor called like one of the columns, such as `connection` in samples, becomes `connection_level`.
    """
    levels = {f"{factor}_level" if factor in columns else factor: level for factor, level in cell["levels"].items()}
    return {**levels, "is_twin": cell["twin_of"] is not None}


def _row(cell: Cell, columns: dict[str, Any]) -> dict[str, Any]:
    return {**_levels(cell, columns), **columns}


def _interval(interval: Any) -> dict[str, float | None]:
    return {"low": None, "high": None} if interval is None else {"low": interval["low"], "high": interval["high"]}
