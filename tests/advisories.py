#!/usr/bin/env python3
"""The kept list of security advisories, for machines that cannot reach the database of RustSec (https://rustsec.org).

    advisories.py keep CLONE      writes tests/advisories.toml: the advisories in a clone of the database, whose texts
                                  are in the public domain, about packages of Cargo.lock
    advisories.py make FOLDER     makes the database of cargo-deny in this folder from the kept list; prints its date
                                  and the packages that it does not know
"""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEPT = Path(os.environ.get("ADVISORIES") or ROOT / "tests/advisories.toml")
DATABASE = "https://github.com/RustSec/advisory-db"
# The folder that cargo-deny derives from the address of the database.
NAME = "advisory-db-3157b0e258782691"
FRONT = re.compile(r"\A```toml\n(.*?)\n```", re.DOTALL)


def packages():
    """The names of the packages of Cargo.lock that come from a registry."""
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    return sorted({package["name"] for package in lock["package"] if "source" in package})


def git(folder, *words):
    return subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True, text=True).stdout


def quoted(words):
    return "[" + ", ".join(f'"{word}"' for word in words) + "]"


def keep(clone):
    names = packages()
    of_names = [f"crates/{name}/" for name in names]
    files = git(clone, "ls-tree", "-r", "--name-only", "HEAD", "--", *of_names).split()
    commit, date = git(clone, "log", "-1", "--format=%H %cs").split()
    lines = [f"# Made by tests/advisories.py from {DATABASE}.", f'commit = "{commit}"', f'date = "{date}"',
             "# The packages whose advisories are listed.", "packages = ["]
    line = "   "
    for name in names:
        if len(line) + len(name) + 4 > 120:
            lines.append(line)
            line = "   "
        line += f' "{name}",'
    lines += [line, "]", "advisories = ["]
    for file in files:
        facts = tomllib.loads(FRONT.match(git(clone, "show", f"HEAD:{file}"))[1])
        advisory, versions = facts["advisory"], facts["versions"]
        if "withdrawn" in advisory:
            continue
        parts = [f'{key} = "{advisory[key]}"' for key in ("id", "package", "date", "informational") if key in advisory]
        parts += [f"{key} = {quoted(versions[key])}" for key in ("patched", "unaffected") if versions.get(key)]
        lines.append(f"    {{ {', '.join(parts)} }},")
    KEPT.write_text("\n".join([*lines, "]", ""]))


def text(advisory):
    """An advisory as a file of the database. A list of versions without an entry is none that is patched."""
    versions = {"patched": [], **{key: value for key, value in advisory.items() if key in ("patched", "unaffected")}}
    facts = [f'{key} = "{value}"' for key, value in advisory.items() if key not in versions]
    ranges = [f"{key} = {quoted(value)}" for key, value in versions.items()]
    title = f"{advisory['package']}: {DATABASE} has the description"
    return "\n".join(["```toml", "[advisory]", *facts, "[versions]", *ranges, "```", "", f"# {title}", ""])


def make(folder):
    kept = tomllib.loads(KEPT.read_text())
    database = Path(folder) / NAME
    for advisory in kept["advisories"]:
        file = database / "crates" / advisory["package"] / f"{advisory['id']}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text(advisory))
    git(database, "init", "--quiet")
    git(database, "add", "--all")
    git(database, "-c", "user.name=wirelab", "-c", "user.email=wirelab@localhost", "commit", "--quiet", "-m", kept["date"])
    print(f"advisories of {kept['date']}, because their database cannot be reached")
    if unknown := sorted(set(packages()) - set(kept["packages"])):
        print(f"advisories about these packages are not known: {', '.join(unknown)}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["keep", clone]:
            keep(clone)
        case ["make", folder]:
            make(folder)
        case _:
            sys.exit(__doc__)
