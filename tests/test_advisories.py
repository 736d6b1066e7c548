#!/usr/bin/env python3
"""The kept list of advisories finds a package with a known flaw, and names packages that it does not know."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parent
KEPT = (TESTS / "advisories.toml").read_text()


def denied(kept):
    """The exit status of the check by a list, and all that it prints."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(kept)
        file.flush()
        ended = subprocess.run([TESTS / "deny.sh"], env={**os.environ, "ADVISORIES": file.name}, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return ended.returncode, ended.stdout


class Advisories(unittest.TestCase):
    def test_a_package_with_a_known_flaw_is_refused(self):
        flaw = '{ id = "RUSTSEC-2099-0001", package = "tokio", date = "2026-01-01", patched = [">= 99.0.0"] }'
        status, said = denied(KEPT.replace("advisories = [\n", f"advisories = [\n    {flaw},\n"))
        self.assertNotEqual(status, 0, said)
        self.assertIn("RUSTSEC-2099-0001", said)

    def test_a_package_that_the_list_does_not_know_is_named(self):
        self.assertIn('"tokio", ', KEPT)
        status, said = denied(KEPT.replace('"tokio", ', "", 1))
        self.assertEqual(status, 0, said)
        self.assertIn("advisories about these packages are not known: tokio\n", said)


if __name__ == "__main__":
    unittest.main()
