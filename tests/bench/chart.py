#!/usr/bin/env python3
"""Draws the result of `make bench-peers`: the processor time of `wirelab load` as a ratio to that of each other tool.

    chart.py RESULT.json CHART.svg        needs matplotlib
"""

import json
import statistics
import sys

import matplotlib
matplotlib.use("svg")
import matplotlib.pyplot as plt

COLOURS = {"h2load": "#1f6feb", "wrk": "#bf8700", "oha": "#8250df", "ghz": "#1a7f37"}


def main():
    matplotlib.rcParams["svg.fonttype"] = "none"
    matplotlib.rcParams["svg.hashsalt"] = "wirelab"  # the same data give the same file
    with open(sys.argv[1]) as file:
        results = [result for result in json.load(file)["results"] if result["tool"] in COLOURS]
    loads = list(dict.fromkeys(result["load"] for result in results))
    figure, axes = plt.subplots(figsize=(8, 0.9 + 0.34 * len(loads)))
    tools = [tool for tool in COLOURS if any(result["tool"] == tool for result in results)]
    for tool in tools:
        colour = COLOURS[tool]
        own = [result for result in results if result["tool"] == tool]
        shift = (tools.index(tool) - (len(tools) - 1) / 2) * 0.2
        rows = [loads.index(result["load"]) + shift for result in own]
        middle = [statistics.median(result["ratios"]) for result in own]
        below = [median - min(result["ratios"]) for median, result in zip(middle, own)]
        above = [max(result["ratios"]) - median for median, result in zip(middle, own)]
        axes.errorbar(middle, rows, xerr=[below, above], fmt="o", markersize=4, color=colour, label=tool, linewidth=1)
    axes.axvline(1, color="#888", linewidth=0.8)
    axes.set_xscale("log")
    ticks = [0.05, 0.1, 0.2, 0.5, 1, 2]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_yticks(range(len(loads)), loads)
    axes.invert_yaxis()
    axes.grid(axis="x", color="#ddd", linewidth=0.6)
    axes.set_xlabel("client processor time per request, wirelab / tool (median and range of the rounds; less is better)")
    axes.legend(ncols=len(tools), loc="lower left", bbox_to_anchor=(0, 1), frameon=False)
    figure.savefig(sys.argv[2], bbox_inches="tight", metadata={"Date": None})


if __name__ == "__main__":
    main()
