#!/usr/bin/env python3
"""Tests of compiled.py with build folders of a few files."""

import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import compiled

OF_OTHERS = "deps/libserde-0123456789abcdef.rlib", "build/ring-0123456789abcdef/output", ".fingerprint/ring-0123456789abcdef/x"
OURS = "deps/libwirelab_engine-0123456789abcdef.rlib", "deps/cli-0123456789abcdef", ".fingerprint/wirelab-0123456789abcdef/x"


class Compiled(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def call(self, action, clone, **environment):
        variables = {"CARGO_TARGET_DIR": str(self.folder / clone), "XDG_CACHE_HOME": str(self.folder / "cache"), **environment}
        with mock.patch.dict(os.environ, variables):
            compiled.main(action, "tests")

    def write(self, clone, *names):
        for name in names:
            path = self.folder / clone / "tests" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(clone)
            os.utime(path, (1000, 1000))

    def files(self, clone):
        folder = self.folder / clone / "tests"
        return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}

    def test_a_new_clone_gets_the_packages_of_others_with_their_times(self):
        self.write("first", *OF_OTHERS, *OURS, "wirelab")
        self.call("keep", "first")
        self.call("restore", "second")
        self.assertEqual(self.files("second"), set(OF_OTHERS))
        self.assertEqual((self.folder / "second/tests" / OF_OTHERS[0]).stat().st_mtime, 1000)

    def test_a_build_folder_is_never_changed_and_a_new_package_is_kept(self):
        self.write("first", *OF_OTHERS)
        self.call("keep", "first")
        self.write("second", "deps/libring-fedcba9876543210.rlib")
        self.call("restore", "second")
        self.assertEqual(self.files("second"), {"deps/libring-fedcba9876543210.rlib"})
        self.call("keep", "second")
        self.call("restore", "third")
        self.assertEqual(self.files("third"), {"deps/libring-fedcba9876543210.rlib"})

    def test_nothing_is_kept_with_other_flags_or_restored_from_nothing(self):
        self.write("first", *OF_OTHERS)
        self.call("keep", "first", RUSTFLAGS="-C debuginfo=2")
        self.call("restore", "second")
        self.assertEqual(self.files("second"), set())
        self.assertEqual([path.name for path in self.folder.iterdir()], ["first"])


if __name__ == "__main__":
    unittest.main()
