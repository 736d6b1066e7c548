#!/usr/bin/env python3
"""Keeps compiled dependencies in the user's cache, so that a second clone compiles our own crates only. Cargo compares
everything that it finds with what it needs, so old or foreign files cost time and change nothing.

usage: tests/compiled.py restore|keep PROFILE   (the build folder is $CARGO_TARGET_DIR, or `target`)"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What cargo has of a compiled package, below the folder of a profile.
PARTS = "deps", "build", ".fingerprint"
NAME = re.compile(r"(?:lib)?(.+?)-[0-9a-f]{16}(?:\.|$)")


def ours():
    """The names of our own packages and of their libraries and programs, as cargo writes them into names of files."""
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--no-deps", "--format-version", "1", "--locked"]
    packages = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)["packages"]
    names = {name for package in packages for name in [package["name"], *(target["name"] for target in package["targets"])]}
    return {name.replace("-", "_") for name in names}


def foreign(folder):
    """The files and folders of packages that are not ours, below the folder of a profile."""
    skip = ours()
    for part in PARTS:
        for entry in os.scandir(folder / part) if (folder / part).is_dir() else ():
            if (name := NAME.match(entry.name)) and name[1].replace("-", "_") not in skip:
                yield f"{part}/{entry.name}"


def copy(source, destination, entries):
    """Copies with times, which cargo compares."""
    for part in PARTS:
        (destination / part).mkdir(parents=True)
    for entry in entries:
        if (source / entry).is_dir():
            shutil.copytree(source / entry, destination / entry, symlinks=True)
        else:
            shutil.copy2(source / entry, destination / entry)


def main(action, profile):
    built = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / profile
    kept = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wirelab" / "compiled" / profile
    source, destination = (kept, built) if action == "restore" else (built, kept)
    # With other flags the files are others.
    if "RUSTFLAGS" in os.environ or action == "restore" and built.exists():
        return
    entries = set(foreign(source))
    if not entries or action == "keep" and entries <= set(foreign(kept)):
        return
    # Under another name until it is complete, because this may be stopped.
    partial = destination.with_name(f"{profile}.{os.getpid()}")
    try:
        copy(source, partial, entries)
        shutil.rmtree(destination, ignore_errors=True)
        partial.rename(destination)
    except OSError as error:
        print(f"compiled dependencies: cannot {action} them, so a new clone compiles them again: {error}")
    finally:
        shutil.rmtree(partial, ignore_errors=True)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("restore", "keep"):
        sys.exit(__doc__.split("\n\n")[1])
    main(*sys.argv[1:])
