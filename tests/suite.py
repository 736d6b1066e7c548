#!/usr/bin/env python3
"""Runs every test program of the workspace, then a study on the test cluster if Kubernetes has been built. Prints at the
end what passed, failed, was skipped (with reasons) and was retried. The output of cargo stays unchanged.

usage: tests/suite.py CARGO [ARGUMENT...]   (arguments go to each `cargo test`)"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ON_CLUSTER = "kubernetes::a_study_runs_in_pods_in_short"

LIMIT = 3600  # seconds for one step; a test that hangs fails the suite instead of blocking it
SIDE_BY_SIDE = (os.cpu_count() or 1) + 2  # tests of a program at the same time: many wait for a process or a browser
GRACE = 10  # seconds in which the processes of tests must have ended after the tests

RUNNING = re.compile(r"^ *(?:Running (?:unittests )?(\S+)|Doc-tests) *\(?(\S+?)\)?$")
RESULT = re.compile(r"^test result: .*?(\d+) passed; (\d+) failed; (\d+) ignored;.*?(?:finished in ([0-9.]+)s)?$")
LISTED = re.compile(r"^    (\S+)$")


class Suite:
    def __init__(self, records):
        self.records = Path(records)
        self.programs = []  # (name, passed, failed, ignored, seconds)
        self.failures = []
        self.broken = []  # steps that failed without a test that did

    def step(self, title, command):
        """Runs a command, forwards its output, and keeps its reports of tests."""
        print(f"== {title}", flush=True)
        environment = {"RUST_TEST_THREADS": str(SIDE_BY_SIDE), **os.environ, "WIRELAB_TEST_RECORDS": str(self.records)}
        before = len(self.failures)
        process = subprocess.Popen(command, cwd=ROOT, env=environment, text=True, errors="replace",
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        # A process that a test left keeps the output open, so the output's end is not awaited without a limit.
        reader = threading.Thread(target=self.read, args=(title, process.stdout), daemon=True)
        reader.start()
        try:
            status = process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.broken.append(f"{title}: not done after {LIMIT // 60} minutes")
            process.kill()
            status = process.wait()
        reader.join(GRACE)
        for left in self.kill_left():
            self.broken.append(f"{title}: left running: {left}")
        reader.join(GRACE)
        if status != 0 and len(self.failures) == before and not any(known.startswith(title) for known in self.broken):
            self.broken.append(title)

    def read(self, title, output):
        program, crate = title, None
        listed = []  # the names of the last list of failures: the line of a test may be cut by what the test prints
        for line in output:
            sys.stdout.write(line)
            sys.stdout.flush()
            line = line.rstrip("\n")
            if match := RUNNING.match(line):
                # Programs of several crates are called `physics`; the unit tests of a crate come before its other programs.
                name = Path(match.group(2)).name.rsplit("-", 1)[0]
                if " unittests " in line:
                    crate = name
                program = name if name == crate or crate is None else f"{crate}/{name}"
            elif match := RESULT.match(line):
                passed, failed, ignored = (int(match.group(part)) for part in (1, 2, 3))
                self.programs.append((program, passed, failed, ignored, float(match.group(4) or 0)))
                self.failures += [f"{program}: {name}" for name in listed if failed]
                listed = []
            elif line == "failures:":
                listed = []
            elif match := LISTED.match(line):
                listed.append(match.group(1))

    def kill_left(self):
        """Kills the processes that still have this suite's variable in their environment; returns their commands."""
        mark = f"WIRELAB_TEST_RECORDS={self.records}".encode()
        left = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    left.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip())
                    os.kill(int(folder.name), signal.SIGKILL)
            except OSError:
                pass  # it has ended, or belongs to another user
        return left

    def skip_cluster(self, why):
        skip = {"record": "skip", "test": ON_CLUSTER, "code": "no-cluster", "reason": why, "is_part": False, "is_ignored": True}
        with self.records.open("a") as file:
            file.write(json.dumps(skip) + "\n")
        print(f"SKIPPED {ON_CLUSTER} (no-cluster): {why}")
        if os.environ.get("WIRELAB_TESTS") == "strict" and not is_listed(ON_CLUSTER, "no-cluster"):
            self.failures.append(f"{ON_CLUSTER}: skipped, and tests/skips.toml does not list it")

    def on_cluster(self):
        """Building Kubernetes takes longer than all other tests, so `make test` uses what `make test-cluster` built."""
        ready = subprocess.run([ROOT / "tests/cluster/cluster.sh", "ready"], capture_output=True, text=True)
        if ready.returncode != 0:
            self.skip_cluster((ready.stdout + ready.stderr).strip() + "; `make test-cluster` prepares and tests everything")
        else:
            self.step("a study on a cluster", [os.environ.get("MAKE", "make"), "on-cluster"])

    def summary(self, seconds):
        records = [json.loads(line) for line in self.records.read_text().splitlines()] if self.records.exists() else []
        skips = [record for record in records if record["record"] == "skip"]
        retries = [record for record in records if record["record"] == "retry"]
        whole = {record["test"]: record for record in skips if not record["is_part"]}
        parts = {(record["test"], record["code"], record["reason"]): record for record in skips if record["is_part"]}
        passed = sum(program[1] for program in self.programs) - sum(not skip["is_ignored"] for skip in whole.values())
        failed = sum(program[2] for program in self.programs)
        ignored = sum(program[3] for program in self.programs) - sum(skip["is_ignored"] and skip["test"] != ON_CLUSTER
                                                                     for skip in whole.values())
        print(f"== summary, after {seconds / 60:.1f} minutes")
        for name, count, *_, took in sorted(self.programs, key=lambda program: -program[4])[:8]:
            print(f"   {took:7.1f} s  {name} ({count} tests)")
        slow = sorted((record for record in records if record["record"] == "seconds"), key=lambda record: -record["seconds"])
        for record in slow[:8]:
            print(f"   {record['seconds']:7.1f} s  {record['test']}")
        for title, entries in ("skipped", whole.values()), ("skipped in part", parts.values()):
            for entry in entries:
                print(f"   {title}: {entry['test']} ({entry['code']}): {first_line(entry['reason'])}")
        for entry in retries:
            print(f"   retried: {entry['test']}, attempt {entry['attempt']} of {entry['of']} failed: {first_line(entry['reason'])}")
        for failure in self.failures:
            print(f"   FAILED: {failure}")
        for title in self.broken:
            print(f"   FAILED: {title}")
        print(f"   {passed} passed, {failed} failed, {len(whole)} skipped, {len(parts)} parts skipped, {len(retries)} retries, "
              f"{ignored} for other targets (make test-quiet, make test-slow, make test-cluster); {len(self.programs)} programs")
        return 1 if failed or self.failures or self.broken else 0


def first_line(text):
    text = " ".join(text.split())
    return text if len(text) <= 200 else text[:200] + "..."


def is_listed(test, code):
    import tomllib  # Python 3.11

    listed = tomllib.loads((ROOT / "tests/skips.toml").read_text()).get("skip", [])
    return any(skip["test"] == test and skip["code"] == code for skip in listed)


def main():
    cargo, *arguments = sys.argv[1:]
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(Path(folder) / "records.jsonl")
        test = [cargo, "test", *arguments]
        # The Makefile makes each compilation a lint, too. Examples have no tests, so they are compiled only for that.
        suite.step("examples", [cargo, "build", *arguments, "--workspace", "--examples"])
        suite.step("tests", [*test, "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"])
        suite.step("examples in documentation", [*test, "--doc", "--workspace"])
        suite.on_cluster()
        return suite.summary(time.monotonic() - begun)


if __name__ == "__main__":
    sys.exit(main())
