#!/usr/bin/env python3
"""Compares the processor time per request of the load engine with other tools: `make bench-engine`.

One nginx worker has one processor, the client with one thread the other. All tools send GET requests for the same file,
in rounds in random order. The script reads the processor time of the tool's process from the kernel (wait4). A ratio
compares the engine with the tool within a round; figures are medians over rounds.

    engine.py ENGINE [CASE]...        cases: h1c-32, h1c-10, h1-32, h1-8-100k, h2-4x16, h2-32x1, h2-2x4-100k
"""

import os
import random
import re
import shutil
import statistics
import sys
import tempfile

from shared import HTTP, HTTPS, ROUNDS, documents, measure, start_nginx

SECONDS = 2
# Case: protocol, connections, streams, file.
CASES = {
    "h1c-32": ("h1c", 32, 1, "1k"),
    "h1c-10": ("h1c", 10, 1, "1k"),
    "h1-32": ("h1", 32, 1, "1k"),
    "h1-8-100k": ("h1", 8, 1, "100k"),
    "h2-4x16": ("h2", 4, 16, "1k"),
    "h2-32x1": ("h2", 32, 1, "1k"),
    "h2-2x4-100k": ("h2", 2, 4, "100k"),
}


def commands(engines, case, folder):
    """Tool and command of each measurement of a case."""
    protocol, connections, streams, file = CASES[case]
    port, scheme = (HTTP, "http") if protocol == "h1c" else (HTTPS, "https")
    c, m, url = str(connections), str(streams), f"{scheme}://localhost:{port}/{file}"
    for name, path in engines.items():
        yield name, [path, protocol, f"127.0.0.1:{port}", f"/{file}", c, m, str(SECONDS), f"{folder}/ca.pem", "localhost"][: 7 if protocol == "h1c" else 9]
    yield "h2load", ["h2load", "-t1", "-c", c, "-m", m, "-D", str(SECONDS), *(["--h1"] if protocol != "h2" else []), url]
    if protocol != "h2":
        yield "wrk", ["wrk", "-t1", f"-c{c}", f"-d{SECONDS}s", url]


def count(text):
    """Successful requests, as the tool reports them."""
    for pattern in (r"(\d+) requests in", r"(\d+) succeeded", r"^(\d+) requests,"):
        found = re.search(pattern, text, re.MULTILINE)
        if found:
            return int(found.group(1))
    raise ValueError(f"no count in: {text}")


def time_per_request(command):
    """Processor time per request in microseconds, of the user and of the kernel."""
    text, usage = measure(command)
    requests = count(text)
    return usage.ru_utime / requests * 1e6, usage.ru_stime / requests * 1e6


def main():
    random.seed(1)
    engines = {"engine": sys.argv[1]}
    if os.environ.get("BEFORE"):
        engines["before"] = os.environ["BEFORE"]
    for tool in ("wrk", "h2load", "curl"):
        if not shutil.which(tool):
            sys.exit(f"{tool} is missing. Remedy: install it")
    print(f"{ROUNDS} rounds of {SECONDS} s in random order; one thread; processor time per request; load of the machine {os.getloadavg()[0]:.1f}")
    print(f"{'case':<13}{'tool':<9}{'user us':>9}{'kernel us':>11}{'sum us':>9}{'engine / tool [range]':>26}")
    with tempfile.TemporaryDirectory() as folder:
        documents(folder)
        server = start_nginx(folder)
        try:
            for case in sys.argv[2:] or CASES:
                tools = dict(commands(engines, case, folder))
                times = {name: [] for name in tools}
                for _ in range(ROUNDS):
                    for name in random.sample(sorted(tools), len(tools)):
                        times[name].append(time_per_request(tools[name]))
                for name in tools:
                    user, kernel = (statistics.median(time[i] for time in times[name]) for i in (0, 1))
                    ratios = [sum(ours) / sum(theirs) for ours, theirs in zip(times["engine"], times[name])]
                    print(f"{case:<13}{name:<9}{user:>9.2f}{kernel:>11.2f}{statistics.median(map(sum, times[name])):>9.2f}"
                          f"{statistics.median(ratios):>12.2f} [{min(ratios):.2f}, {max(ratios):.2f}]", flush=True)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
