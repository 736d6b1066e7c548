#!/usr/bin/env python3
"""Measures the limits of `wirelab load` on one processor, with the null server on the other: `make bench-limits`.

- Memory: the largest resident set at 64 connections, for more and more requests.
- Connections: the same with 50,000 open connections at a steady 10,000 requests/s, or as many as descriptors allow.
- Lag: the 99th percentile of the delay that the client adds, in an open loop of 50,000 requests/s.
- Count: each line has two numbers of requests, the client's and the server's.

    limits.py [memory|connections|lag]...
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from shared import SERVER_PROCESSOR, measure

ROOT = Path(__file__).resolve().parents[2]
WIRELAB = os.environ.get("WIRELAB", str(ROOT / "target/release/wirelab"))
REQUESTS = [100_000, 1_000_000, 5_000_000]
CONNECTIONS = min(50_000, resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 500)


class Server:
    """The null server, over HTTP/1.1 in clear text."""

    def __init__(self, folder):
        spec = {"contract": 1, "protocol": "h1c", "address": "127.0.0.1", "port": 0, "server_name": "localhost",
                "features": ["bytes"], "threads": 1}
        path = Path(folder, "server.json")
        path.write_text(json.dumps(spec))
        self.process = subprocess.Popen([WIRELAB, "endpoint", "--engine", "server", "--spec", path], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True,
                                        preexec_fn=lambda: os.sched_setaffinity(0, {SERVER_PROCESSOR}))
        self.port = json.loads(self.process.stdout.readline())["port"]

    def end(self):
        """Ends it; returns the number of requests that it answered."""
        self.process.stdin.close()
        last = json.loads(self.process.stdout.read().strip().splitlines()[-1])
        self.process.wait()
        return last["requests"]


def load(*arguments):
    """Runs a load on processor 0; its result, and its largest resident set in MiB."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder)
        command = [WIRELAB, "load", "-p", "h1c", "--json", "--quiet", *arguments, f"http://127.0.0.1:{server.port}/bytes/1024"]
        try:
            text, usage = measure(command)
        finally:
            answered = server.end()
    # The command sends one request before the load.
    return json.loads(text), usage.ru_maxrss / 1024, answered - 1


def counts(result, answered):
    failed = sum(result["errors"].values())
    return f"client {result['requests']:,} requests, {failed} failed; server {answered:,}"


def memory():
    for requests in REQUESTS:
        result, largest, answered = load("-c", "64", "-n", str(requests))
        print(f"memory: {largest:.1f} MiB after {counts(result, answered)}", flush=True)


def connections():
    result, largest, answered = load("-c", str(CONNECTIONS), "-r", "10000/s", "-d", "20s")
    print(f"connections: {largest:.0f} MiB with {CONNECTIONS:,} open; {counts(result, answered)}", flush=True)


def lag():
    for _ in range(3):
        result, _, answered = load("-c", "64", "-r", "50000/s", "-d", "10s")
        print(f"lag: P99 {result['values']['lag_p99'] / 1000:.0f} us; {counts(result, answered)}", flush=True)


def main():
    known = {"memory": memory, "connections": connections, "lag": lag}
    for name in sys.argv[1:] or known:
        if name not in known:
            sys.exit(f"{name}: expected one of {', '.join(known)}")
        known[name]()


if __name__ == "__main__":
    main()
