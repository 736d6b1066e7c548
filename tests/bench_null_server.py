#!/usr/bin/env python3
"""Compares the processor time per request of the null server with nginx: `make bench-null-server`.

One server with one thread has one processor, the same client the other: GET requests for 1 KiB over 32 persistent
connections of HTTP/1.1 in clear text, in rounds in random order. The script reads the processor time of the server's
processes from /proc before and after each round. A ratio compares both servers within a round.

    bench_null_server.py NULL LOAD        executables of the engine's examples `null` and `load`
"""

import os
import random
import statistics
import subprocess
import sys
import tempfile

from bench_engine import ROUNDS, SECONDS, count, start_nginx

NULL_PORT, NGINX_PORT, CONNECTIONS = 18081, 18080, 32


def processor_time(pid):
    """User and kernel time of a process and its children in seconds, to the nanosecond of the scheduler."""
    children = open(f"/proc/{pid}/task/{pid}/children").read().split()
    own = sum(int(open(f"/proc/{pid}/task/{task}/schedstat").read().split()[0]) for task in os.listdir(f"/proc/{pid}/task"))
    return own / 1e9 + sum(processor_time(int(child)) for child in children)


def measure(load, pid, port, path):
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
        nginx = start_nginx(folder)
        command = ["taskset", "-c", "1" if os.cpu_count() > 1 else "0", null, "h1c", str(NULL_PORT)]
        server = subprocess.Popen(command, stdin=subprocess.PIPE)
        try:
            subprocess.run(["curl", "-s", "--retry", "20", "--retry-connrefused", "--retry-delay", "1", "-o", "/dev/null",
                            f"http://127.0.0.1:{NULL_PORT}/bytes/1024"], check=True)
            servers = {"null": (server.pid, NULL_PORT, "/bytes/1024"), "nginx": (nginx.pid, NGINX_PORT, "/1k")}
            found = {name: [] for name in servers}
            for _ in range(ROUNDS):
                for name in random.sample(sorted(servers), len(servers)):
                    found[name].append(measure(load, *servers[name]))
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
