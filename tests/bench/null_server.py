#!/usr/bin/env python3
"""Compares the processor time per request of the null server with nginx: `make bench-null-server`.

One server with one thread has one processor, the same client the other: GET requests for 1 KiB over 32 persistent
connections of HTTP/1.1 in clear text, in rounds in random order. The script reads the processor time of the server's
processes from /proc before and after each round. A ratio compares both servers within a round.

    null_server.py NULL LOAD        executables of the engine's examples `null` and `load`
"""

import os
import random
import statistics
import subprocess
import sys
import tempfile

from engine import SECONDS, count
from shared import HTTP, ROUNDS, SERVER_PROCESSOR, documents, processor_time, start_nginx, wait_for

NULL_PORT, CONNECTIONS = 18081, 32


def cost_and_rate(load, pid, port, path):
    """Processor time of the server per request, in microseconds, and requests per second."""
    before = processor_time(pid)
    command = ["taskset", "-c", "0", load, "h1c", f"127.0.0.1:{port}", path, str(CONNECTIONS), "1", str(SECONDS)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    requests = count(text)
    return (processor_time(pid) - before) / requests * 1e6, requests / SECONDS


def main():
    random.seed(1)
    null, load = sys.argv[1:3]
    print(f"{ROUNDS} rounds of {SECONDS} s in random order; load of the machine {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        documents(folder)
        nginx = start_nginx(folder)
        command = ["taskset", "-c", str(SERVER_PROCESSOR), null, "h1c", str(NULL_PORT)]
        server = subprocess.Popen(command, stdin=subprocess.PIPE)
        try:
            wait_for(f"http://127.0.0.1:{NULL_PORT}/bytes/1024")
            servers = {"null": (server.pid, NULL_PORT, "/bytes/1024"), "nginx": (nginx.pid, HTTP, "/1k")}
            found = {name: [] for name in servers}
            for _ in range(ROUNDS):
                for name in random.sample(sorted(servers), len(servers)):
                    found[name].append(cost_and_rate(load, *servers[name]))
            for name, results in found.items():
                cost, rate = (statistics.median(result[i] for result in results) for i in (0, 1))
                print(f"{name:<6} {cost:6.2f} us of server CPU per request, {1e6 / cost:9,.0f} requests per CPU second, "
                      f"{rate:9,.0f} requests/s")
            ratios = [theirs[0] / ours[0] for ours, theirs in zip(found["null"], found["nginx"])]
            print(f"requests per CPU second, null / nginx: {statistics.median(ratios):.2f} [{min(ratios):.2f}, {max(ratios):.2f}]")
        finally:
            server.stdin.close()
            server.wait()
            nginx.terminate()
            nginx.wait()


if __name__ == "__main__":
    main()
