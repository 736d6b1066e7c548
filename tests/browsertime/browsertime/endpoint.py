"""browsertime as a client of trials: what another program measures of the same load, over the same link. See ../README.md.

Every load is in a browser of its own, as browsertime does it. Of what the contract has, this knows only what the study beside it asks for.
"""

import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

from wirelab_endpoint import contract
from wirelab_endpoint.contract import Failure, Unsupported

CHROMIUM = "/usr/lib/chromium/chromium"  # Debian's program; the one on the path is a script that adds flags of its own
ALPN = {"h1": "http/1.1", "h2": "h2", "h3": "h3"}
FORCING = {"h1": ["disable-quic", "disable-http2"], "h2": ["disable-quic"], "h3": ["origin-to-force-quic-on={host}:{port}"]}

# The flags of wirelab's own Chromium that keep it quiet.
QUIET = ["disable-gpu", "no-first-run", "disable-background-networking", "disable-component-update", "disable-sync",
         "disable-dev-shm-usage"]

# The protocol of the document and of every resource.
PROTOCOLS = """(function () {
  const of = kind => performance.getEntriesByType(kind).map(entry => entry.nextHopProtocol);
  return [...of('navigation'), ...of('resource')];
})();
"""

# Settings that a browser decides itself, and that a study of pages does not set.
LEFT_ALONE = ["request", "connections", "schedule", "resumption", "timeouts", "seed", "recording", "transport", "warm_up", "addresses"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, help="browsertime's own, as it was installed")
    parser.add_argument("role", choices=["describe", "client"])
    parser.add_argument("--spec", metavar="FILE")
    arguments = parser.parse_args()
    if arguments.role == "describe":
        print(json.dumps(describe(arguments.program)))
    elif arguments.spec is None:
        parser.error("--spec FILE is missing")
    else:
        contract.conduct(lambda: client(arguments.program, contract.read_spec(arguments.spec)))


def describe(program):
    with open(os.path.join(os.path.dirname(program), "../package.json"), encoding="utf-8") as file:
        version = json.load(file)["version"]
    return {"contract": contract.VERSION, "name": "browsertime", "library": "browsertime and Chromium", "version": version,
            "language": "JavaScript", "client": {"protocols": list(ALPN), "features": ["pages"]}}


def client(program, spec):
    protocol = spec.choose("protocol", list(ALPN))
    page, tls, extent = spec.inner("page"), spec.inner("tls"), spec.take("extent")
    host, port, address, results = (spec.take(name) for name in ["server_name", "port", "address", "results"])
    path = spec.left["request"]["path"]
    if list(extent) != ["requests"] or spec.left.get("recording") != "loads":
        raise Unsupported("spec: loads are counted, and recorded as `loads`")
    for name in LEFT_ALONE:
        spec.take(name, None)
    spec.end()
    wanted = page.take("requests")
    commands = contract.Commands(contract.give_up)
    with tempfile.TemporaryDirectory(prefix="browsertime-") as home:
        trust(home, tls.take("trust_anchor"))
        flags = [*QUIET, f"host-resolver-rules=MAP {host} {address}",
                 *(flag.format(host=host, port=port) for flag in FORCING[protocol])]
        if os.geteuid() == 0:
            flags.append("no-sandbox")
        contract.emit("ready", configured={"alpn": ALPN[protocol]})
        commands.expect("go")
        contract.emit("warm")
        commands.expect("go")
        begun = time.monotonic_ns()
        said = run(program, home, flags, f"https://{host}:{port}{path}", extent["requests"])
        contract.emit("end", window_ns=time.monotonic_ns() - begun)
        commands.expect("finish")
        loads = records(said, ALPN[protocol], wanted)
        with open(results, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(load) + "\n" for load in loads)
        contract.emit("done", requests=len(loads), errors={}, configured={"alpn": ALPN[protocol]})


def trust(home, authority):
    """Adds the authority to the user's authorities, which Chromium trusts."""
    store = os.path.join(home, ".pki", "nssdb")
    os.makedirs(store)
    for arguments in [["-N", "--empty-password"], ["-A", "-n", "lab", "-t", "CT,,", "-i", authority]]:
        tell(["certutil", *arguments[:1], "-d", f"sql:{store}", *arguments[1:]], home)


def run(program, home, flags, url, loads):
    """Loads the page with browsertime and returns its result."""
    script, out = os.path.join(home, "protocols.js"), os.path.join(home, "result")
    with open(script, "w", encoding="ascii") as file:
        file.write(PROTOCOLS)
    tell(["node", program, "--browser", "chrome", "--headless", "--iterations", str(loads), "--resultDir", out, "--skipHar",
          "--video", "false", "--visualMetrics", "false", "--viewPort", "1280x800", "--script", script,
          "--chrome.binaryPath", CHROMIUM, "--chrome.chromedriverPath", "/usr/bin/chromedriver",
          *(word for flag in flags for word in ("--chrome.args", flag)), url], home)
    [path] = glob.glob(os.path.join(out, "**", "browsertime.json"), recursive=True)
    with open(path, encoding="utf-8") as file:
        return json.load(file)[0]


def tell(command, home):
    # Its profiles are then in folders that are removed, however it ends.
    ended = subprocess.run(command, env={**os.environ, "HOME": home, "TMPDIR": home}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, check=False)
    sys.stderr.write(ended.stdout)
    if ended.returncode != 0:
        last = ended.stdout.strip().rsplit("\n", 1)[-1]
        raise Failure("other", f"{os.path.basename(command[0])} ended with {ended.returncode}: {last}")


def records(said, alpn, wanted):
    """One record per load. browsertime takes the load event from the page's own timeline, in whole milliseconds."""
    absent = {"not_measured": "the cross-check asks browsertime for the load event only"}
    loads = []
    for scripts in said["browserScripts"]:
        [protocols] = scripts["custom"].values()
        load = {"outcome": "ok", "resources": [],
                "values": {**dict.fromkeys(["net", "content_loaded", "first_byte", "first_paint", "largest_paint", "requests",
                                            "received", "header_bytes", "request_header_bytes", "connections"], absent),
                           "onload": scripts["timings"]["pageTimings"]["pageLoadTime"] * 1_000_000}}
        if len(protocols) != wanted or set(protocols) != {alpn}:
            load.update(outcome="failed", blame="server", values={},
                        reason=f"{wanted} resources over {alpn} were expected; browsertime saw {protocols}")
        loads.append(load)
    return loads


if __name__ == "__main__":
    main()
