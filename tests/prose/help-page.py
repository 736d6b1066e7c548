#!/usr/bin/env python3
"""Turns the output of `wirelab COMMAND --help` into Markdown for the prose linter.

Usage lines, examples, and the terms of commands and options become code; each description is a paragraph.
"""
import re
import sys

TERM = re.compile(r"^ {2,8}(?:-|<|\[|[a-z][a-z-]*(?:\s{2,}|$))")
CODE_SECTIONS = ("Usage:", "Examples:", "Example:")

section = ""
for line in sys.stdin.read().splitlines():
    heading = re.match(r"^([A-Z][A-Za-z ]*:)(.*)", line)
    if heading and (heading[1] in CODE_SECTIONS or not heading[2].strip()):
        section = heading[1]
        print(f"\n`{line}`\n")
    elif section in CODE_SECTIONS and (line.startswith(" ") or not line.strip()):
        print(f"\n`{line.strip()}`\n" if line.strip() else "")
    elif TERM.match(line):
        term, _, text = line.strip().partition("  ")
        print(f"\n`{term}`\n\n{text.strip()}")
    else:
        if not line.startswith(" ") and line.strip():
            section = ""
        print(line.strip())
