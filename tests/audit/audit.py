#!/usr/bin/env python3
"""Audits the verdicts on this machine: `tests/audit/audit.py WIRELAB --minutes 60 [--page docs/audit.md]`.

It runs the built-in study `null`, whose arms are equal, with planted effects of known size, until the time is used up.
It prints how often a verdict was false, how often planted effects were found, and how often intervals covered the
truth. `--json FILE` writes the same as JSON.
"""

import argparse
import datetime
import json
import math
import subprocess
import sys
import textwrap
import time

# Reasons for which a comparison was not judged at all. Every other comparison counts.
NOT_JUDGED = {"too_few_blocks", "no_values", "not_ended"}


def clopper_pearson(count, of, confidence=0.95):
    """The interval of a share, after Clopper and Pearson (1934)."""

    def at_most(successes, share):
        return sum(math.comb(of, k) * share**k * (1 - share) ** (of - k) for k in range(successes + 1))

    def solve(is_below):
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if is_below(middle) else (low, middle)
        return low

    tail = (1 - confidence) / 2
    low = 0.0 if count == 0 else solve(lambda share: 1 - at_most(count - 1, share) < tail)
    high = 1.0 if count == of else solve(lambda share: at_most(count, share) > tail)
    return low, high


class Tally:
    """Counts cases with an outcome."""

    def __init__(self):
        self.count = self.of = 0

    def add(self, is_so):
        self.count += bool(is_so)
        self.of += 1

    def summary(self):
        if not self.of:
            return {"count": 0, "of": 0, "share": None, "interval": None}
        interval = clopper_pearson(self.count, self.of)
        return {"count": self.count, "of": self.of, "share": self.count / self.of, "interval": interval}


class Audit:
    """What the reports of runs say about known truths."""

    def __init__(self):
        self.tallies = {}
        self.not_judged = {}
        self.runs = 0

    def add(self, report):
        """Adds a run's report."""
        self.runs += 1
        false_in_run = judged_in_run = False
        for compared in report["comparisons"]:
            pair = "A/A pairs" if compared["aa"] else "equal arms"
            what = f"{pair}, {compared['metric']}" + (" (exploratory)" if compared.get("exploratory") else "")
            verdict = compared["verdict"]
            if verdict.get("why") in NOT_JUDGED:
                self._skip(what)
                continue
            is_false = verdict["verdict"] in ("less", "more")
            self._tally("false", what).add(is_false)
            if not compared["aa"] and not compared.get("exploratory"):
                judged_in_run, false_in_run = True, false_in_run or is_false
            self._cover(what, compared["interval"], 1.0)
        if judged_in_run:
            self._tally("runs", "runs with a false verdict on equal arms").add(false_in_run)
        for effect in (report["planted"] or {}).get("effects", {}).get("effects", []):
            what = f"{effect['metric']}, {effect['size']:.0%}"
            if effect["detection"] in NOT_JUDGED:
                self._skip(f"planted, {what}")
                continue
            self._tally("power", what).add(effect["detection"] == "found")
            self._tally("reversed", what).add(effect["detection"] == "reversed")
            self._cover(f"planted, {what}", effect["interval"], effect["truth"])

    def _tally(self, kind, what):
        return self.tallies.setdefault(kind, {}).setdefault(what, Tally())

    def _skip(self, what):
        self.not_judged[what] = self.not_judged.get(what, 0) + 1

    def _cover(self, what, interval, truth):
        if interval is not None:
            self._tally("coverage", what).add(interval["low"] <= truth <= interval["high"])

    def summary(self):
        kinds = ("runs", "false", "power", "reversed", "coverage")
        shares = {
            kind: {what: tally.summary() for what, tally in self.tallies.get(kind, {}).items()} for kind in kinds
        }
        return {"complete_runs": self.runs, **shares, "not_judged": self.not_judged}


TITLES = {
    "runs": "Runs with a false verdict in the primary metric",
    "false": "False verdicts by metric",
    "power": "Planted effects found",
    "reversed": "Planted effects reversed",
    "coverage": "95 % intervals that contain the truth",
}


def text(result):
    """The result as Markdown."""
    machine = ", ".join(f"{key}: {value}" for key, value in result["machine"].items() if value is not None)
    facts = [f"**Measured.** {result['date']}, {result['minutes']:.1f} minutes; runs: {result['complete_runs']}."]
    facts += [f"**Machine.** {machine}.", f"**Settings.** {', '.join(result['settings'])}."]
    lines = [textwrap.fill(fact, 115, initial_indent="- ", subsequent_indent="  ") for fact in facts]
    for kind, title in TITLES.items():
        lines += ["", f"## {title}", "", "| case | count | share | 95 % interval |", "|---|---|---|---|"]
        for what, share in result[kind].items():
            low, high = (f"{end:.1%}" for end in share["interval"])
            lines.append(f"| {what} | {share['count']} of {share['of']} | {share['share']:.1%} | {low} to {high} |")
        if not result[kind]:
            lines[-2:] = ["No case could be judged."]
    if result["not_judged"]:
        lines += ["", "## Not judged", "", "Too few blocks or no values:", ""]
        lines += [f"- {what}: {count}" for what, count in result["not_judged"].items()]
    return "\n".join(lines) + "\n"


def page(result):
    """The page of the manual."""
    return (
        "# Audit\n\n`make audit` runs the study `null`, whose arms are equal, with planted effects, and counts how"
        "\noften the report was wrong. `tests/audit/audit.py` writes this page. Intervals are those of Clopper and"
        "\nPearson (1934). They treat cases as independent; the cases of one run share its machine.\n\n" + text(result)
    )


def machine(environment):
    """The facts about the machine that a reader needs."""
    facts = {key: environment.get(key) for key in ("kernel", "cpu", "cores", "hypervisor")}
    return {"program": environment.get("wirelab"), **facts, "load before the last run": environment.get("load_average")}


class FailedRun(Exception):
    """A run that ended without a report."""


def run(wirelab, settings, seed):
    """The report of one run."""
    sets = [argument for setting in [*settings, f"seed={seed}"] for argument in ("--set", setting)]
    command = [wirelab, "run", "null", "--quiet", "--json", "--out", "wirelab-runs/audit", *sets]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise FailedRun(f"`{' '.join(command)}` ended with exit status {done.returncode}; see its message above")
    return json.loads(done.stdout)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("wirelab", help="the program")
    arguments.add_argument("--minutes", type=float, default=60, help="time for all runs; at least one is complete")
    arguments.add_argument("--seed", type=int, default=1, help="seed of the first run; the next ones follow")
    arguments.add_argument("--set", action="append", default=[], help="a further setting of `wirelab run`")
    arguments.add_argument("--note", help="what a reader should know of this run of the audit")
    arguments.add_argument("--json", help="write the result to this file, as JSON")
    arguments.add_argument("--page", help="write the result to this page of the manual")
    given = arguments.parse_args()
    # A quarter of the time for planted trials, so that each size has the blocks that a verdict needs.
    settings = ["planted=25 %", *given.set]
    audit, begin, longest, seed, report, ended = Audit(), time.monotonic(), 0.0, given.seed, None, None
    try:
        while report is None or time.monotonic() - begin + longest <= given.minutes * 60:
            started = time.monotonic()
            report = run(given.wirelab, settings, seed)
            audit.add(report)
            longest, seed = max(longest, time.monotonic() - started), seed + 1
            print(f"audit: {audit.runs} runs in {(time.monotonic() - begin) / 60:.0f} minutes", file=sys.stderr)
    except KeyboardInterrupt:
        ended = "interrupted"
    except FailedRun as failed:
        ended = str(failed)
    if report is None:
        sys.exit(f"audit: {ended}")
    result = {
        "date": datetime.date.today().isoformat(),
        "minutes": (time.monotonic() - begin) / 60,
        "machine": machine(report["environment"]),
        "settings": [f"seeds {given.seed} to {seed - 1}", *settings],
        **audit.summary(),
    }
    if given.note:
        result["settings"].append(given.note)
    if given.page:
        with open(given.page, "w", encoding="utf-8") as file:
            file.write(page(result))
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            file.write(json.dumps(result, indent=2) + "\n")
    print(text(result), end="")
    if ended:
        sys.exit(f"audit: {ended}; the results are those of the runs before")


if __name__ == "__main__":
    main()
