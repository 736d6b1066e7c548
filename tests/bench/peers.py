#!/usr/bin/env python3
"""Compares the load generator with its peers, on one server in one run: `make bench-peers`.

Each tool sends GET requests for a 1 KiB document to the same built-in server, in rounds in random order. The server has
one processor, the client the other. The script counts the requests that the tool itself reports as successful, and
reads the CPU time of the tool's process from the kernel's account (wait4). Figures are medians over rounds; a ratio
compares with `wirelab load` round by round. Missing tools are omitted.
"""

import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

SECONDS = 3
ROUNDS = int(os.environ.get("ROUNDS", "7"))
CONNECTIONS, STREAMS = 10, 10
BODY = 1024
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WIRELAB = os.path.join(ROOT, "target/release/wirelab")
PEERS = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "wirelab/peers/bin")


def tool(name):
    """The path of a peer: on the search path, or in the cache that tests/bench/peers.sh fills."""
    return shutil.which(name) or shutil.which(name, path=PEERS)


def wirelab_count(text):
    return json.loads(text)["requests"]


def wrk_count(text):
    return int(re.search(r"(\d+) requests in", text).group(1))


def h2load_count(text):
    return int(re.search(r"(\d+) succeeded", text).group(1))


def oha_count(text):
    return sum(json.loads(text)["statusCodeDistribution"].values())


def commands(protocol, url, ca):
    """The same load for each tool: (tool, command, function that reads its count)."""
    multiplexed = protocol in ("h2", "h2c", "h3")
    streams = STREAMS if multiplexed else 1
    c, m, d = str(CONNECTIONS), str(streams), SECONDS
    yield "wirelab", [WIRELAB, "load", "--protocol", protocol, "-c", c, "-m", m, "-d", f"{d}s", "--ca", ca, "--json", "--quiet", url], wirelab_count
    if tool("h2load") and protocol != "h3":
        version = ["--h1"] if protocol in ("h1", "h1c") else []
        yield "h2load", [tool("h2load"), "-t1", "-c", c, "-m", m, "-D", str(d), *version, url], h2load_count
    if tool("wrk") and protocol in ("h1", "h1c"):
        yield "wrk", [tool("wrk"), "-t1", "-c", c, "-d", f"{d}s", url], wrk_count
    if tool("oha"):
        version = {"h1": "1.1", "h1c": "1.1", "h2": "2", "h2c": "2", "h3": "3"}[protocol]
        parallel = ["-p", m] if multiplexed else []
        yield "oha", [tool("oha"), "-z", f"{d}s", "-c", c, *parallel, "--http-version", version, "--insecure",
                      "--no-tui", "--output-format", "json", url], oha_count


def measure(command, read):
    """Runs a tool on the client's processor; returns successful requests and CPU seconds, or raises the reason."""
    with tempfile.TemporaryFile() as out:
        pid = os.fork()
        if pid == 0:
            os.sched_setaffinity(0, {0})
            os.dup2(out.fileno(), 1)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            os.execv(command[0], command)
        _, status, usage = os.wait4(pid, 0)
        out.seek(0)
        text = out.read().decode(errors="replace")
    if status != 0:
        raise RuntimeError(f"{command[0]} ended with status {os.waitstatus_to_exitcode(status)}")
    return read(text), usage.ru_utime + usage.ru_stime


def certificate(folder):
    run = lambda *a: subprocess.run(a, check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=bench CA",
        "-keyout", "ca.key", "-out", "ca.pem")
    run("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost", "-keyout", "key.pem", "-out", "leaf.csr")
    with open(os.path.join(folder, "ext"), "w") as file:
        file.write("subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
    run("openssl", "x509", "-req", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "ext", "-out", "leaf.pem")


def start_server(folder, protocol):
    spec = {"contract": 1, "protocol": protocol, "address": "127.0.0.1", "port": 0, "server_name": "localhost",
            "features": ["files"], "document_root": folder, "threads": 1}
    if protocol in ("h1", "h2", "h3"):
        spec["tls"] = {"certificate": f"{folder}/leaf.pem", "key": f"{folder}/key.pem", "resumption": False, "early_data": False}
    path = os.path.join(folder, f"{protocol}.json")
    with open(path, "w") as file:
        json.dump(spec, file)
    server = subprocess.Popen([WIRELAB, "endpoint", "server", "--spec", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              preexec_fn=lambda: os.sched_setaffinity(0, {os.cpu_count() - 1}))
    ready = json.loads(server.stdout.readline())
    return server, ready["port"]


def main():
    random.seed(1)
    protocols = sys.argv[1:] or ["h1c", "h1", "h2", "h3"]
    print(f"{ROUNDS} rounds of {SECONDS} s; {CONNECTIONS} connections, {STREAMS} streams each where multiplexed; 1 KiB; one thread each")
    print(f"{'protocol':<9}{'tool':<9}{'requests/s':>12}{'CPU s per million':>20}{'CPU ratio to wirelab [range]':>34}")
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, f"{BODY}.bin"), "wb") as file:
            file.write(bytes(i % 251 for i in range(BODY)))
        certificate(folder)
        for protocol in protocols:
            server, port = start_server(folder, protocol)
            scheme = "http" if protocol in ("h1c", "h2c") else "https"
            url = f"{scheme}://127.0.0.1:{port}/{BODY}.bin"
            tools = {name: (command, read) for name, command, read in commands(protocol, url, f"{folder}/ca.pem")}
            rate, cost, failed = {}, {}, {}
            for _ in range(ROUNDS):
                for name in random.sample(sorted(tools), len(tools)):
                    try:
                        count, cpu = measure(*tools[name])
                        rate.setdefault(name, []).append(count / SECONDS)
                        cost.setdefault(name, []).append(cpu / count * 1e6)
                    except (RuntimeError, ZeroDivisionError, ValueError, KeyError, AttributeError) as error:
                        failed[name] = f"{type(error).__name__}: {error}"
            server.stdin.close()
            server.wait()
            for name in tools:
                if name in failed:
                    print(f"{protocol:<9}{name:<9} not measured: {failed[name]}")
                    continue
                ratios = [a / b for a, b in zip(cost[name], cost.get("wirelab", []))] or [float("nan")]
                print(f"{protocol:<9}{name:<9}{statistics.median(rate[name]):>12,.0f}{statistics.median(cost[name]):>20.2f}"
                      f"{statistics.median(ratios):>18.2f} [{min(ratios):.2f}, {max(ratios):.2f}]")


if __name__ == "__main__":
    main()
