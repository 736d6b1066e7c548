#!/usr/bin/env python3
"""Fuzzes the readers of foreign text and bytes by coverage: `make fuzz`.

The script builds a program of libFuzzer for each target (`crates/fuzz`) on the stable compiler, and gives it its kept
inputs and a new seed. A crash is an input on which a reader panics, runs longer than a second or takes too much memory.
It is reduced to a smaller input that crashes, too. The exit status is 1 if there is one.

    fuzz.py [TARGET]...             seconds per target: FUZZ_SECONDS (60)
    fuzz.py --keep [TARGET]...      replaces the kept inputs by a few that reach the same code
"""

import base64
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEPT = ROOT / "crates/fuzz/corpus"
BUILD = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "fuzz"
TRIPLE = subprocess.run(["rustc", "--print", "host-tuple"], capture_output=True, text=True, check=True).stdout.strip()
PROGRAMS = BUILD / "programs"
CRASHES = BUILD / "crashes"
FOUND = BUILD / "corpus"
# Those of cargo-fuzz, which are all stable. With an explicit target, build scripts and derive macros do not get them.
COVERAGE = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 " \
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table " \
    "-Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing"
LIMITS = ["-timeout=1", "-rss_limit_mb=1024", "-malloc_limit_mb=512", "-max_len=8192"]
# The kept inputs of a target: the longest input in bytes, and the size of all lines.
LONGEST, MOST = 4096, 12_000


def build(target=None):
    """Builds the program of a target, or without a target the program that writes all inputs. Returns its path."""
    environment = os.environ | {"RUSTFLAGS": COVERAGE}
    environment.pop("FUZZ_TARGET", None)
    if target:
        environment["FUZZ_TARGET"] = target
    quiet = ["--quiet"] if target else []
    subprocess.run([os.environ.get("CARGO", "cargo"), "build", *quiet, "--profile", "fuzz", "--locked", "--target", TRIPLE,
                    "--target-dir", str(BUILD), "-p", "wirelab-fuzz", "--features", "libfuzzer"],
                   cwd=ROOT, env=environment, check=True)
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    return shutil.copy(BUILD / TRIPLE / "fuzz/wirelab-fuzz", PROGRAMS / (target or "inputs"))


def libfuzzer(target, *arguments):
    """Runs libFuzzer. Returns its exit status and what it says."""
    ended = subprocess.run([PROGRAMS / target, *LIMITS, *arguments], stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, text=True, errors="replace")
    return ended.returncode, ended.stderr


def number(pattern, text):
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def fuzz(target, seeds, seconds):
    """Fuzzes a target. Returns executions, seconds, covered edges, and the reduced inputs that crash."""
    found, crashes = FOUND / target, CRASHES / target
    for folder in found, crashes:
        folder.mkdir(parents=True, exist_ok=True)
    before = set(crashes.iterdir())
    status, said = libfuzzer(target, f"-max_total_time={seconds}", f"-artifact_prefix={crashes}/",
                             "-print_final_stats=1", "-reload=0", str(found), str(seeds))
    executions = number(r"stat::number_of_executed_units: (\d+)", said) or number(r"^#(\d+)", said)
    new = sorted(set(crashes.iterdir()) - before)
    if status and not new:
        print(said[-3000:], file=sys.stderr)
        raise SystemExit(f"{target}: libFuzzer ended with exit status {status} and kept no input")
    rate = number(r"stat::average_exec_per_sec: +(\d+)", said)
    return executions, rate, number(r"cov: (\d+)", said), [reduced(target, crash) for crash in new]


def reduced(target, crash):
    """A smaller input that crashes, if one is found within 20 s."""
    smaller = crash.with_name(f"reduced-{crash.name}")
    libfuzzer(target, "-minimize_crash=1", "-max_total_time=20", f"-exact_artifact_path={smaller}", str(crash))
    return smaller if smaller.exists() and libfuzzer(target, str(smaller))[0] else crash


def keep(target, seeds):
    """Replaces the kept inputs: first the smallest inputs that reach the same code, as far as the limit goes."""
    with tempfile.TemporaryDirectory() as folder:
        (FOUND / target).mkdir(parents=True, exist_ok=True)
        status, said = libfuzzer(target, "-merge=1", f"-max_len={LONGEST}", folder, str(FOUND / target), str(seeds))
        if status:
            print(said[-3000:], file=sys.stderr)
            raise SystemExit(f"{target}: libFuzzer ended with exit status {status}; the kept inputs are as before")
        inputs = sorted(pathlib.Path(folder).iterdir(), key=lambda path: (path.stat().st_size, path.name))
        lines, left = [], MOST
        for path in inputs:
            line = base64.b64encode(path.read_bytes()).decode()
            left -= len(line) + 1
            if left < 0:
                break
            lines.append(line)
    KEPT.mkdir(exist_ok=True)
    (KEPT / f"{target}.base64").write_text("".join(f"{line}\n" for line in lines))
    return len(lines), len(inputs)


def main():
    arguments = sys.argv[1:]
    keeps = "--keep" in arguments
    asked = [argument for argument in arguments if argument != "--keep"]
    seconds = int(os.environ.get("FUZZ_SECONDS", "60"))
    print("== building the targets with libFuzzer")
    inputs = build()
    with tempfile.TemporaryDirectory() as seeds:
        seeds = pathlib.Path(seeds)
        subprocess.run([inputs], env=os.environ | {"FUZZ_SEEDS": str(seeds)}, check=True)
        known = sorted(path.name for path in seeds.iterdir())
        if unknown := set(asked) - set(known):
            raise SystemExit(f"no target: {' '.join(sorted(unknown))}; the targets are: {' '.join(known)}")
        if keeps:
            for target in asked or known:
                build(target)
                kept, all_inputs = keep(target, seeds / target)
                print(f"{target:16}{kept:8} inputs kept of {all_inputs} that reach different code", flush=True)
            return
        print(f"{'target':16}{'executions':>14}{'per second':>12}{'edges':>8}{'crashes':>9}")
        crashes, total = [], 0
        for target in asked or known:
            build(target)
            executions, rate, edges, found = fuzz(target, seeds / target, seconds)
            print(f"{target:16}{executions:14,}{rate:12,}{edges:8,}{len(found):9}", flush=True)
            crashes += found
            total += executions
        print(f"{'all':16}{total:14,}")
    for crash in crashes:
        print(f"crash: {crash}\n  to see it: {PROGRAMS / crash.parent.name} {crash}")
    if crashes:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
