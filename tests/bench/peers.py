#!/usr/bin/env python3
"""Compares `wirelab load` with other load generators, all on the same server in one run: `make bench-peers`.

The client with one thread has one processor, the server the other. In each round every tool sends the same load for the
same time, in random order. The script counts the requests that the tool itself reports as successful, and reads the
processor time of the tool's process from the kernel (wait4), and that of the server from /proc. Figures are medians over
rounds; a ratio compares `wirelab load` with a tool within a round. A tool that is missing or fails is "not measured".

    peers.py [--json FILE] [LOAD]...      LOAD: a part of a load's name, such as h3 or 100k; default: all
"""

import argparse
import collections
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from shared import HTTP, HTTPS, ROUNDS, SERVER_PROCESSOR, documents, measure, processor_time, start_nginx

SECONDS = 2
HANDSHAKES = 2000  # requests with a new connection each
LOOPBACK, ETHERNET = 65536, 1500  # MTU of the loopback device
ROOT = Path(__file__).resolve().parents[2]
PEERS = Path(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))) / "wirelab/peers/bin"
WIRELAB = os.environ.get("WIRELAB", str(ROOT / "target/release/wirelab"))
SQUARE_ROOT = "wirelab.Heron/SquareRoot"  # contract/heron.proto
MESSAGE = bytes.fromhex("090000000000001040")  # its argument: field 1, the double 4.0

LARGEST = "65507 B"  # UDP payload over the loopback device
Load = collections.namedtuple("Load", "name protocol connections streams file mtu kind")
PERSISTENT, FULL, RESUMED = "persistent", "new connections", "resumed connections"
LOADS = [
    Load("h1c 32x1 1k", "h1c", 32, 1, "1k", LOOPBACK, PERSISTENT),
    Load("h1c 10x1 1k", "h1c", 10, 1, "1k", LOOPBACK, PERSISTENT),
    Load("h1 32x1 1k", "h1", 32, 1, "1k", LOOPBACK, PERSISTENT),
    Load("h1 10x1 1k", "h1", 10, 1, "1k", LOOPBACK, PERSISTENT),
    Load("h2 4x16 1k", "h2", 4, 16, "1k", LOOPBACK, PERSISTENT),
    Load("h2 32x1 1k", "h2", 32, 1, "1k", LOOPBACK, PERSISTENT),
    Load("h3 4x16 1k", "h3", 4, 16, "1k", LOOPBACK, PERSISTENT),
    Load("h3 32x1 1k", "h3", 32, 1, "1k", LOOPBACK, PERSISTENT),
    Load("h3 4x16 1k, MTU 1500", "h3", 4, 16, "1k", ETHERNET, PERSISTENT),
    Load("h3 32x1 1k, MTU 1500", "h3", 32, 1, "1k", ETHERNET, PERSISTENT),
    Load("h1 8x1 100k", "h1", 8, 1, "100k", LOOPBACK, PERSISTENT),
    Load("h2 2x4 100k", "h2", 2, 4, "100k", LOOPBACK, PERSISTENT),
    Load("h3 2x4 100k", "h3", 2, 4, "100k", LOOPBACK, PERSISTENT),
    Load("h1 8x1 100k, MTU 1500", "h1", 8, 1, "100k", ETHERNET, PERSISTENT),
    Load("h2 2x4 100k, MTU 1500", "h2", 2, 4, "100k", ETHERNET, PERSISTENT),
    Load("h3 2x4 100k, MTU 1500", "h3", 2, 4, "100k", ETHERNET, PERSISTENT),
    Load("grpcc 1x1", "grpcc", 1, 1, None, LOOPBACK, PERSISTENT),
    Load("grpcc 10x100", "grpcc", 10, 100, None, LOOPBACK, PERSISTENT),
    Load("h1 new connections", "h1", 4, 1, "1k", LOOPBACK, FULL),
    Load("h2 new connections", "h2", 4, 1, "1k", LOOPBACK, FULL),
    Load("h2 resumed connections", "h2", 4, 1, "1k", LOOPBACK, RESUMED),
    Load("h3 new connections", "h3", 4, 1, "1k", LOOPBACK, FULL),
    Load("h3 resumed connections", "h3", 4, 1, "1k", LOOPBACK, RESUMED),
]


class NotMeasured(Exception):
    """A tool cannot send a load, or failed."""


def tool(name):
    path = shutil.which(name, path=f"{PEERS}:{os.environ['PATH']}")
    if not path:
        raise NotMeasured(f"{name} is missing")
    return path


def wirelab(load, url, folder, grpc):
    command = [WIRELAB, "load", "--protocol", load.protocol, "-c", str(load.connections), "-m", str(load.streams), "--json", "--quiet"]
    command += ["-d", f"{SECONDS}s"] if load.kind == PERSISTENT else ["-n", str(HANDSHAKES), "--new-connections"]
    command += ["--resumption", "resume"] if load.kind == RESUMED else []
    # The peers take datagrams as large as the path carries.
    command += ["--max-udp-payload", LARGEST] if load.protocol == "h3" and load.mtu == LOOPBACK else []
    # The peers verify no chain of certificates either.
    command += ["--insecure"] if url.startswith("https") else []
    command += ["--body", f"@{folder}/message", f"http://127.0.0.1:{grpc}/{SQUARE_ROOT}"] if load.file is None else [url]
    return command, lambda text: json.loads(text)["requests"]


def h2load(load, url, folder, grpc):
    command = [tool("h2load-http3"), "-t1", "-m", str(load.streams)]
    if load.kind == PERSISTENT:
        command += ["-c", str(load.connections), "-D", str(SECONDS)]
    else:
        # A client of h2load has one connection. New ones start at a rate that the server can answer.
        command += ["-c", str(HANDSHAKES), "-n", str(HANDSHAKES), "-r", "500"]
    if load.kind == RESUMED and load.protocol == "h2":
        raise NotMeasured("over TCP h2load 1.70 resumes its first connection only, as nginx tells")
    if load.kind == RESUMED:
        session = f"{folder}/session-{load.protocol}"
        if not os.path.exists(session):
            version = ["--h3"] if load.protocol == "h3" else []
            subprocess.run([command[0], "-n1", "-c1", *version, f"--tls-session-file={session}", url], check=True, capture_output=True)
        command.append(f"--tls-session-file={session}")
    command += {"h1": ["--h1"], "h1c": ["--h1"], "h3": ["--h3"]}.get(load.protocol, [])
    if load.file is None:
        command += ["-d", f"{folder}/framed", "-H", "content-type: application/grpc", "-H", "te: trailers",
                    f"http://127.0.0.1:{grpc}/{SQUARE_ROOT}"]
    else:
        command.append(url)
    return command, lambda text: int(re.search(r"(\d+) succeeded", text).group(1))


def wrk(load, url, folder, grpc):
    if load.protocol not in ("h1", "h1c") or load.kind != PERSISTENT:
        return None
    return [tool("wrk"), "-t1", "-c", str(load.connections), f"-d{SECONDS}s", url], lambda text: int(re.search(r"(\d+) requests in", text).group(1))


def oha(load, url, folder, grpc):
    # Over HTTP/3 oha 1.16 stays for half a minute after its last request.
    if load.file is None or load.kind == RESUMED or load.protocol == "h3":
        return None
    command = [tool("oha"), "-c", str(load.connections), "--http-version", "2" if load.protocol == "h2" else "1.1",
               "--insecure", "--no-tui", "--output-format", "json"]
    command += ["-p", str(load.streams)] if load.protocol == "h2" else []
    command += ["-z", f"{SECONDS}s"] if load.kind == PERSISTENT else ["-n", str(HANDSHAKES), "--disable-keepalive"]
    return [*command, url], lambda text: sum(json.loads(text)["statusCodeDistribution"].values())


def ghz(load, url, folder, grpc):
    if load.file is not None:
        return None
    command = [tool("ghz"), "--insecure", "--proto", str(ROOT / "contract/heron.proto"), "--call", SQUARE_ROOT,
               "--binary-file", f"{folder}/message", "-c", str(load.connections * load.streams),
               "--connections", str(load.connections), "--cpus", "1", "-z", f"{SECONDS}s", "--duration-stop", "ignore",
               "--format", "json", f"127.0.0.1:{grpc}"]
    return command, lambda text: json.loads(text)["statusCodeDistribution"]["OK"]


TOOLS = {"wirelab": wirelab, "h2load": h2load, "wrk": wrk, "oha": oha, "ghz": ghz}


def versions():
    """What was compared, as the tools name themselves."""
    asked = {"wirelab": [WIRELAB, "--version"], "h2load": ["h2load-http3", "--version"], "wrk": ["wrk", "--version"],
             "oha": ["oha", "--version"], "ghz": ["ghz", "--version"], "nginx": ["nginx-http3", "-v"]}
    for name, (program, flag) in asked.items():
        try:
            path = program if name == "wirelab" else tool(program)
            done = subprocess.run([path, flag], capture_output=True, text=True)
            yield name, (done.stdout + done.stderr).strip().splitlines()[0]
        except (NotMeasured, OSError, IndexError) as error:
            yield name, f"none ({error})"


def set_mtu(mtu):
    done = subprocess.run(["ip", "link", "set", "lo", "mtu", str(mtu)], capture_output=True, text=True)
    if done.returncode:
        raise NotMeasured(f"the MTU of the loopback device cannot be set: {done.stderr.strip()}")


def start_grpc(folder):
    """Starts wirelab's own server for gRPC; returns it with its port."""
    Path(folder, "message").write_bytes(MESSAGE)
    Path(folder, "framed").write_bytes(b"\0" + len(MESSAGE).to_bytes(4, "big") + MESSAGE)
    spec = {"contract": 1, "protocol": "grpcc", "address": "127.0.0.1", "port": 0, "server_name": "localhost",
            "features": ["heron"], "threads": 1}
    path = Path(folder, "grpc.json")
    path.write_text(json.dumps(spec))
    server = subprocess.Popen([WIRELAB, "endpoint", "server", "--spec", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              preexec_fn=lambda: os.sched_setaffinity(0, {SERVER_PROCESSOR}))
    return server, json.loads(server.stdout.readline())["port"]


def one_round(command, read, server):
    """Requests, their time in seconds, and the processor time of client and server per request, in microseconds."""
    before, start = processor_time(server.pid), time.monotonic()
    text, usage = measure(command)
    took = time.monotonic() - start
    served = processor_time(server.pid) - before
    requests = read(text)
    if not requests:
        raise NotMeasured("no request succeeded")
    return {"requests": requests, "seconds": took, "user": usage.ru_utime / requests * 1e6,
            "kernel": usage.ru_stime / requests * 1e6,
            "server": served / requests * 1e6}


def compare(load, server, folder, grpc):
    """The rounds of all tools under one load, or why there are none."""
    url = f"http://127.0.0.1:{HTTP}/{load.file}" if load.protocol == "h1c" else f"https://127.0.0.1:{HTTPS}/{load.file}"
    commands, rounds, missing = {}, {}, {}
    try:
        set_mtu(load.mtu)
    except NotMeasured as error:
        return rounds, {name: str(error) for name in TOOLS}
    for name, make in TOOLS.items():
        try:
            made = make(load, url, folder, grpc)
            if made:
                commands[name] = made
        except (NotMeasured, subprocess.CalledProcessError) as error:
            missing[name] = str(error)
    for _ in range(ROUNDS):
        for name in random.sample(sorted(commands), len(commands)):
            if name in missing:
                continue
            try:
                rounds.setdefault(name, []).append(one_round(*commands[name], server))
            except (NotMeasured, RuntimeError, ValueError, KeyError, AttributeError) as error:
                missing[name] = f"{type(error).__name__}: {error}"
                rounds.pop(name, None)
    return rounds, missing


def show(load, rounds, missing):
    """Prints a load's lines; returns them as data."""
    found = []
    cost = lambda one: one["user"] + one["kernel"]
    for name in [*rounds, *(name for name in missing if name not in rounds)]:
        if name in missing:
            print(f"{load.name:<24}{name:<9}not measured: {missing[name]}")
            continue
        middle = lambda key: statistics.median(one[key] for one in rounds[name])
        ratios = sorted(cost(ours) / cost(theirs) for ours, theirs in zip(rounds.get("wirelab", []), rounds[name]))
        ratio = f"{statistics.median(ratios):.2f} [{ratios[0]:.2f}, {ratios[-1]:.2f}]" if ratios and name != "wirelab" else ""
        print(f"{load.name:<24}{name:<9}{middle('user'):>9.2f}{middle('kernel'):>11.2f}{middle('server'):>11.2f}{ratio:>22}", flush=True)
        found.append({"load": load.name, "tool": name, "ratios": ratios, "rounds": rounds[name]})
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("loads", nargs="*", metavar="LOAD")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    chosen = [load for load in LOADS if not asked.loads or any(part in load.name for part in asked.loads)]
    if not chosen:
        sys.exit(f"no load has {' or '.join(asked.loads)} in its name. Loads: {', '.join(load.name for load in LOADS)}")
    random.seed(1)
    known = dict(versions())
    print("\n".join(f"{name}: {version}" for name, version in known.items()))
    print(f"{ROUNDS} rounds in random order, {SECONDS} s or {HANDSHAKES} new connections each; one thread each; load of the machine {os.getloadavg()[0]:.1f}")
    print(f"{'load':<24}{'tool':<9}{'user us':>9}{'kernel us':>11}{'server us':>11}{'wirelab / tool':>22}")
    found = []
    with tempfile.TemporaryDirectory() as folder:
        documents(folder)
        nginx = start_nginx(folder, tool("nginx-http3"), http3=True)
        grpc, port = start_grpc(folder)
        try:
            for load in chosen:
                server = nginx if load.file else grpc
                found += show(load, *compare(load, server, folder, port))
        finally:
            grpc.stdin.close()
            grpc.wait()
            nginx.terminate()
            nginx.wait()
    if asked.json:
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        asked.json.write_text(json.dumps({"versions": known, "results": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
