#!/usr/bin/env python3
"""The audit counts false verdicts, found effects and coverage as the reports state them."""

import contextlib
import io
import unittest
from unittest import mock

import audit
from audit import Audit, FailedRun, clopper_pearson, page


def compared(verdict, low, high, why=None, aa=False, exploratory=False):
    judged = {"verdict": verdict} | ({"why": why} if why else {})
    interval = {"low": low, "high": high}
    return {
        "aa": aa, "metric": "response_median", "exploratory": exploratory, "verdict": judged, "interval": interval
    }


def effect(detection, low, high):
    return {
        "metric": "response_median", "size": 0.1, "truth": 1.1, "detection": detection,
        "interval": {"low": low, "high": high},
    }


def summary(*reports):
    audit = Audit()
    for comparisons, effects in reports:
        audit.add({"comparisons": comparisons, "planted": {"effects": {"effects": effects}}})
    return audit.summary()


class Counts(unittest.TestCase):
    def test_intervals_are_those_of_scipy(self):
        # scipy.stats.binomtest(k, n).proportion_ci(0.95, "exact")
        for count, of, low, high in ((0, 10, 0, 0.3084971), (10, 10, 0.6915029, 1), (3, 40, 0.0157422, 0.2038647)):
            found = clopper_pearson(count, of)
            self.assertAlmostEqual(found[0], low, 6)
            self.assertAlmostEqual(found[1], high, 6)

    def test_a_run_with_two_false_verdicts_counts_once(self):
        wrong = compared("less", 0.8, 0.9)
        right = compared("cannot_tell", 0.9, 1.1, "too_noisy")
        found = summary(([wrong, wrong], []), ([right, right], []))
        runs = found["runs"]["runs with a false verdict on equal arms"]
        self.assertEqual((runs["count"], runs["of"]), (1, 2))
        metric = found["false"]["equal arms, response_median"]
        self.assertEqual((metric["count"], metric["of"]), (2, 4))
        covered = found["coverage"]["equal arms, response_median"]
        self.assertEqual((covered["count"], covered["of"]), (2, 4))

    def test_exploratory_metrics_and_aa_pairs_do_not_make_a_run_false(self):
        right = compared("equivalent", 0.99, 1.01)
        others = [compared("more", 1.1, 1.2, exploratory=True), compared("more", 1.1, 1.2, aa=True)]
        found = summary(([right, *others], []))
        self.assertEqual(found["runs"]["runs with a false verdict on equal arms"]["count"], 0)
        self.assertEqual(found["false"]["A/A pairs, response_median"]["count"], 1)
        self.assertEqual(found["false"]["equal arms, response_median (exploratory)"]["count"], 1)

    def test_effects_with_too_few_blocks_are_neither_found_nor_missed(self):
        found = summary(([], [effect("found", 1.05, 1.2), effect("missed", 0.9, 1.09), effect("too_few_blocks", 1, 2)]))
        power, covered = found["power"]["response_median, 10%"], found["coverage"]["planted, response_median, 10%"]
        self.assertEqual((power["count"], power["of"]), (1, 2))
        self.assertEqual((covered["count"], covered["of"]), (1, 2))
        self.assertEqual(found["not_judged"], {"planted, response_median, 10%": 1})

    def test_a_failed_run_or_an_interruption_keeps_the_runs_before(self):
        report = {"comparisons": [compared("equivalent", 0.99, 1.01)], "planted": None, "environment": {}}
        for end in FailedRun("no disk"), KeyboardInterrupt():
            out = io.StringIO()
            with (
                mock.patch.object(audit, "run", side_effect=[report, report, end]),
                mock.patch("sys.argv", ["audit.py", "wirelab"]),
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(io.StringIO()),
                self.assertRaises(SystemExit) as ended,
            ):
                audit.main()
            self.assertIn("runs: 2", out.getvalue())
            self.assertRegex(str(ended.exception), "no disk|interrupted")

    def test_a_page_without_cases_says_so_instead_of_zero(self):
        found = summary(([compared("cannot_tell", 0, 9, "too_few_blocks")], []))
        text = page(found | {"date": "2000-01-01", "minutes": 1, "machine": {"cores": 2}, "settings": ["seed 1"]})
        self.assertEqual(text.count("No case could be judged."), 5)
        self.assertNotIn("0.0%", text)


if __name__ == "__main__":
    unittest.main()
