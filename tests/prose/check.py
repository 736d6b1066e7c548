#!/usr/bin/env python3
"""The prose linter.

    tests/prose/check.py            checks every page of the repository, and the comments and texts of study files and
                                    of code
    tests/prose/check.py FILE...    checks these files

The help of commands, settings, metrics and observers is checked in docs/reference, which is generated from it. Ends with
status 1 if a rule is broken.
"""

import os
import sys
from pathlib import Path

import pages
import rules

ROOT = Path(__file__).resolve().parents[2]
GLOSSARY = ROOT / "docs/glossary.md"
PAGES = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "contract", "docs", "endpoints", "python", "studies", "tests"]
CODE = ["crates", "endpoints"]
STUDIES = ["studies"]
OTHERS = ["endpoints", "contract", "deploy", "docs", "python", "tests"]  # code in other languages than Rust
OTHER_SUFFIXES = (".go", ".java", ".js", ".cs", ".c", ".h", ".py", ".sh")
OMITTED = {"node_modules", "target", "__pycache__"}  # not ours


def files(places, suffix):
    for place in places:
        if place.endswith(suffix):
            yield ROOT / place
        for folder, folders, names in os.walk(ROOT / place):
            folders[:] = sorted(set(folders) - OMITTED)
            yield from (Path(folder) / name for name in sorted(names) if name.endswith(suffix))


def check(path, source, known):
    every = [rules.phrases, rules.openings, rules.line_length]
    if path.suffix == ".rs":
        page = pages.rust(path, source)
        every += [rules.paraphrases]
    elif path.suffix == ".toml":
        page = pages.toml(path, source)
        every += [rules.sentence_length, rules.abbreviations(known)]
    elif path.suffix in OTHER_SUFFIXES:
        page = pages.other(path, source)
        every = [rules.phrases]
    elif "results" in path.parts:
        # The report of an archived run: its lines and sentences are as long as the names of cells.
        page = pages.markdown(path, source)
        every = [rules.phrases, rules.openings]
    else:
        page = pages.markdown(path, source)
        every = [
            rules.phrases,
            rules.openings,
            rules.sentence_length,
            rules.average,
            rules.line_length,
            rules.abbreviations(known),
        ]
    return sorted(fault for rule in every for fault in rule(page))


def main(arguments):
    known = rules.glossary(GLOSSARY.read_text())
    # The rules themselves have the banned phrases.
    others = [path for path in files(OTHERS, OTHER_SUFFIXES) if path.parent != ROOT / "tests/prose"]
    every = [*files(PAGES, ".md"), *files(STUDIES, ".toml"), *files(CODE, ".rs"), *others]
    paths = [Path(name) for name in arguments] or every
    count = 0
    for path in paths:
        for line, rule, message in check(path, path.read_text(), known):
            count += 1
            print(f"{os.path.relpath(path)}:{line}: {rule}: {message}")
    print(f"prose: {len(paths)} files, {count} faults", file=sys.stderr)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
