#!/usr/bin/env python3
"""Prints what a sequential client adds to a known delay beyond its own cost at 0: `beyond.py < cells.csv`.

Each figure is the median minus the delay, minus the same at a delay of 0, in microseconds. The goals: 100 us or 1 % for
the client, 30 us from kernel to kernel. Exits with 0 in any case: the machine decides, not the program.
"""

import csv
import sys

METRICS = {"response_median": "client", "kernel_response_median": "kernel"}


def goal_us(view, delay_ms):
    return max(100, delay_ms * 10) if view == "client" else 30


def main():
    medians = {}
    for row in csv.DictReader(sys.stdin):
        if row["metric"] in METRICS and not row["twin_of"] and row["median"]:
            delay_ms = float(row["delay"].removesuffix(" ms"))
            key = (row["client"], row["protocol"], METRICS[row["metric"]])
            medians.setdefault(key, {})[delay_ms] = float(row["median"]) / 1e3 - delay_ms * 1e3
    delays = sorted({delay for errors in medians.values() for delay in errors if delay})
    print("| client | protocol | times of | own cost at 0 | " + " | ".join(f"{delay:g} ms" for delay in delays) + " |")
    print("|---|---|---|---|" + "---|" * len(delays))
    met = dict.fromkeys(METRICS.values(), 0)
    judged = dict.fromkeys(METRICS.values(), 0)
    for (client, protocol, view), errors in medians.items():
        cells = []
        for delay in delays:
            if 0 not in errors or delay not in errors:
                cells.append("not measured")
                continue
            beyond = errors[delay] - errors[0]
            is_met = abs(beyond) <= goal_us(view, delay)
            met[view] += is_met
            judged[view] += 1
            cells.append(f"{beyond:.0f}" if is_met else f"**{beyond:.0f}**")
        own = f"{errors[0]:.0f}" if 0 in errors else "not measured"
        print(f"| {client} | {protocol} | {view} | {own} | " + " | ".join(cells) + " |")
    counts = "; ".join(f"{view} {met[view]} of {judged[view]}" for view in met)
    print(f"\nWithin the goal: {counts}. Figures beyond it are bold.")


if __name__ == "__main__":
    main()
