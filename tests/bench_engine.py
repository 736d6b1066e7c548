#!/usr/bin/env python3
"""Compares the processor time per request of the load engine with other tools: `make bench-engine`.

One nginx worker has one processor, the client with one thread the other. All tools send GET requests for the same file,
in rounds in random order. The script reads the processor time of the tool's process from the kernel (wait4). A ratio
compares the engine with the tool within a round; figures are medians over rounds.

    bench_engine.py ENGINE [CASE]...        cases: h1c-32, h1c-10, h1-32, h1-8-100k, h2-4x16, h2-32x1, h2-2x4-100k
"""

import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

SECONDS = 2
ROUNDS = int(os.environ.get("ROUNDS", "7"))
HTTP, HTTPS = 18080, 18443
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
SIZES = {"1k": 1024, "100k": 102400}
CONFIGURATION = """
worker_processes 1; worker_cpu_affinity %s; pid %s/nginx.pid; error_log %s/error.log; daemon off;
events { worker_connections 4096; }
http {
  access_log off; sendfile on; tcp_nodelay on; open_file_cache max=100;
  keepalive_requests 1000000000; keepalive_timeout 3600;
  server { listen 127.0.0.1:%d; root %s; }
  server { listen 127.0.0.1:%d ssl http2; ssl_certificate %s/leaf.pem; ssl_certificate_key %s/key.pem; ssl_protocols TLSv1.3; root %s; }
}
"""


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


def measure(command):
    """Processor time per request in microseconds, of the user and of the kernel, on the client's processor."""
    with tempfile.TemporaryFile() as out:
        pid = os.fork()
        if pid == 0:
            os.sched_setaffinity(0, {0})
            os.dup2(out.fileno(), 1)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            os.execvp(command[0], command)
        _, status, usage = os.wait4(pid, 0)
        out.seek(0)
        text = out.read().decode(errors="replace")
    if status != 0:
        raise RuntimeError(f"{command[0]} ended with status {os.waitstatus_to_exitcode(status)}")
    requests = count(text)
    return usage.ru_utime / requests * 1e6, usage.ru_stime / requests * 1e6


def certificate(folder):
    def run(*command):
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
        "-subj", "/CN=bench CA", "-keyout", "ca.key", "-out", "ca.pem")
    run("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost",
        "-keyout", "key.pem", "-out", "leaf.csr")
    with open(os.path.join(folder, "ext"), "w") as file:
        file.write("subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
    run("openssl", "x509", "-req", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
        "-extfile", "ext", "-out", "leaf.pem")


def start_nginx(folder):
    for name, size in SIZES.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(bytes(i % 251 for i in range(size)))
    certificate(folder)
    os.chmod(folder, 0o755)
    mask = "10" if os.cpu_count() > 1 else "1"
    with open(os.path.join(folder, "nginx.conf"), "w") as file:
        file.write(CONFIGURATION % (mask, folder, folder, HTTP, folder, HTTPS, folder, folder, folder))
    server = subprocess.Popen(["/usr/sbin/nginx", "-c", os.path.join(folder, "nginx.conf")], stderr=subprocess.DEVNULL)
    check = ["curl", "-s", "--retry", "20", "--retry-connrefused", "--retry-delay", "1", "-o", "/dev/null", f"http://127.0.0.1:{HTTP}/1k"]
    subprocess.run(check, check=True)
    return server


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
        server = start_nginx(folder)
        try:
            for case in sys.argv[2:] or CASES:
                tools = dict(commands(engines, case, folder))
                times = {name: [] for name in tools}
                for _ in range(ROUNDS):
                    for name in random.sample(sorted(tools), len(tools)):
                        times[name].append(measure(tools[name]))
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
