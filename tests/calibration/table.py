#!/usr/bin/env python3
"""Prints the table of docs/calibration.md in microseconds, from a run: `tests/calibration/table.py < cells.csv`.

The error is the median response time minus the server's delay; at a delay of 0 it is the protocol's own cost.
"""

import csv
import sys

rows = [row for row in csv.DictReader(sys.stdin) if row["metric"] == "response_median" and not row["twin_of"]]
delays = sorted({row["delay"] for row in rows}, key=lambda text: float(text.split()[0]))
cells = {(row["kind"], row["protocol"], row["delay"]): row for row in rows}
print("| client | protocol | " + " | ".join(f"delay {delay}" for delay in delays) + " |")
print("|---|---|" + "---|" * len(delays))
for kind in dict.fromkeys(row["kind"] for row in rows):
    for protocol in dict.fromkeys(row["protocol"] for row in rows):
        errors = []
        for delay in delays:
            row = cells.get((kind, protocol, delay))
            if row is None or not row["median"]:
                errors.append("not measured")
                continue
            errors.append(f"{float(row['median']) / 1000 - float(delay.split()[0]) * 1000:.0f}")
        print(f"| {kind} | {protocol} | " + " | ".join(errors) + " |")
