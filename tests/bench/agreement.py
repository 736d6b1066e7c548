#!/usr/bin/env python3
"""Compares the answers of studies with the load engine and with the built-in client (hyper, quinn): `make agreement`.

Each study runs with both clients as levels of a factor, so that both meet the same blocks. Each comparison of response
times, rates or failures exists twice, once for each client. Two significant ones must have the same sign.

    agreement.py WIRELAB [STUDY...]    default: all studies of STUDIES, about 20 minutes on a quiet machine
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter

# Studies whose question is not about clients, with the settings that make them short.
STUDIES = {
    "quick": [],
    "grpc": [],
    "cloud-quic": ["payload=8 KiB", "duration=200 ms", "blocks.max=13"],
    "conditions": ["round_trip=25 ms", "bandwidth=100 Mbit/s", "blocks.max=12"],
}
# Values of a client's own cost, which differ between clients by design.
OWN = ("cpu_", "memory_")
SIGN = {"less": -1, "more": 1}


def run(wirelab, study, folder):
    """The report of a run with both clients."""
    sets = [argument for setting in ["client=engine,builtin", *STUDIES[study]] for argument in ("--set", setting)]
    command = [wirelab, "run", study, "--json", "--out", folder, *sets]
    print(f"agreement: {' '.join(command)}", file=sys.stderr)
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def pairs(report):
    """The comparisons of both clients: (what is compared, that of the engine, that of the built-in client)."""
    levels = {cell["cell"]: cell["levels"] for cell in report["cells"]}
    found = {}
    for compared in report["comparisons"]:
        cell, baseline = levels[compared["cell"]], levels[compared["baseline"]]
        if compared["aa"] or cell["client"] != baseline["client"] or compared["metric"].startswith(OWN):
            continue
        others = [f"{factor}={level}" for factor, level in cell.items() if factor != "client"]
        found.setdefault((compared["metric"], *others), {})[cell["client"]] = compared
    return [(" ".join(what), both["engine"], both["builtin"]) for what, both in found.items() if len(both) == 2]


def judge(engine, builtin):
    """How two comparisons agree."""
    signs = [SIGN.get(compared["verdict"]["verdict"], 0) for compared in (engine, builtin)]
    if all(signs):
        return "same sign" if signs[0] == signs[1] else "opposite signs"
    return "significant with the engine only" if signs[0] else "with the built-in client only" if signs[1] else "neither"


def main():
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= set(STUDIES):
        sys.exit(__doc__.split("\n\n")[-1] + f"studies: {', '.join(STUDIES)}")
    columns = ["same sign", "opposite signs", "significant with the engine only", "with the built-in client only", "neither"]
    opposite = []
    print(f"| study | blocks | {' | '.join(columns)} |\n|---{'|---:' * (len(columns) + 1)}|")
    with tempfile.TemporaryDirectory() as folder:
        for study in sys.argv[2:] or STUDIES:
            report = run(os.path.abspath(sys.argv[1]), study, folder)
            counts = Counter()
            for what, engine, builtin in pairs(report):
                counts[judge(engine, builtin)] += 1
                if judge(engine, builtin) == "opposite signs":
                    opposite.append(f"{study}: {what}: ratio {engine['ratio']:.2f} and {builtin['ratio']:.2f}")
            row = [study, report["complete_blocks"], *(counts[column] for column in columns)]
            print(f"| {' | '.join(map(str, row))} |", flush=True)
    for line in opposite:
        print(f"opposite: {line}")
    if opposite:
        sys.exit(1)


if __name__ == "__main__":
    main()
