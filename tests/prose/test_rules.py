#!/usr/bin/env python3
"""Each rule finds a fault that is planted for it, on its line, and finds none in a page that keeps all rules."""

import unittest
from pathlib import Path

import check


def faults(text, name="page.md"):
    return [(line, rule) for line, rule, _ in check.check(Path(name), text, {"TCP"})]


def words(number):
    return "word " * number


class Rules(unittest.TestCase):
    def finds(self, rule, text, name="page.md"):
        self.assertEqual(faults(text, name), [(3, rule)], text)

    def test_each_rule_finds_its_fault(self):
        for text in (
            "A page says what nobody knows.",
            "The server, of which the client knows the name, answers.",
            "Those that answer are counted.",
            "The client is told to begin.",
        ):
            self.finds("phrase", f"# Title\n\n{text}\n")
            self.finds("phrase", f"fn f() {{}}\n\n/// {text}\n", "code.rs")
            self.finds("phrase", f'fn f() {{}}\n\nlet text = "{text}";\n', "code.rs")
        for text in ("There is a server.", "The first one answers. It is quinn that waits.", "Of a server, nothing is known."):
            self.finds("opening", f"# Title\n\n{text}\n")
            self.finds("opening", f"fn f() {{}}\n\n    // {text}\n", "code.rs")
        self.finds("line", f"# Title\n\n{words(12)}, {words(12)}\n")
        self.finds("line", f"fn f() {{}}\n\n    // {words(12)}, {words(12)}\n", "code.rs")
        for item in ("pub rates: [u64; 2],", "#[serde(default)]\npub(crate) const fn rate_of(self) {}", "Rate(u64),"):
            self.finds("paraphrase", f"struct S {{\n\n    /// Its rate.\n    {item}\n", "code.rs")
        self.finds("abbreviation", "# Title\n\nThe XQZ answers.\n")
        self.finds("abbreviation", "# Title\n\nXQZs use forward error correction (XQZ).\n")
        self.finds("sentence", f"# Title\n\nThis\n{words(20)}\n{words(15)}ends.\n\nShort. Short.\n")
        self.finds("sentence", f"# Title\n\n| {words(36)}. |\n")
        self.finds("sentence", f"# Title\n\n- {words(20)}\n  {words(16)}\n\nShort. Short.\n")
        self.assertEqual(faults(f"# Title\n\n{words(20)}\n{words(10)}.\n"), [(1, "average")])

    def test_code_in_other_languages_keeps_the_rule_of_phrases(self):
        for name, text in (("a.go", "// nobody knows"), ("a.py", "# nobody knows"), ("A.java", " * nobody knows"), ("a.c", 'say("nobody knows");')):
            self.finds("phrase", f"x\n\n{text}\n", name)

    def test_studies_keep_the_rules_of_comments_and_sentences(self):
        for rule, text in (
            ("phrase", "# Nobody knows it."),
            ("phrase", 'question = "What is nobody to know?"'),
            ("sentence", f"# {words(20)}\n# {words(16)}"),
            ("abbreviation", 'meaning = "the XQZ answers"'),
        ):
            self.finds(rule, f'name = "a"\n\n{text}\n', "study.toml")

    def test_reports_of_archived_runs_may_have_long_names(self):
        name = "studies/a/results/b/report.md"
        self.assertEqual(faults(f"# Title\n\n{words(40)}XQZ\n", name), [])
        self.assertEqual(faults("# Title\n\nNobody knows it.\n", name), [(3, "phrase")])

    def test_a_fault_has_its_line(self):
        self.assertEqual(faults("# Title\n\nOne `code\nspan` and\n[a link](https://example.org/)\nnobody\nknows.\n"), [(6, "phrase")])

    def test_code_tables_and_addresses_are_exempt(self):
        code = f"nobody, of which, XQZ: {words(40)}"
        address = "https://example.org/of-which/a-path-of-more-than-sixty-columns/that-no-line-break-divides/nobody/XQZ"
        for text in (
            f"    {code}",
            f"- Item:\n\n      {code}",
            f"```\n{code}\n\n{code}\n```",
            f"The code `{code[:90]}` is exempt.",
            f"| cell | {'word. ' * 40} |\n|---|---|\n| cell | cell |",
            f"| {'`code`, ' * 40} | {words(20)}<br>{words(20)} |",
            f"A page has more text than one address, {address}.",
            f"A page has more text than [a link]({address}).",
            f"{words(20)}\n{words(15)}.\n\nShort. Short.",
            "Forward error correction (FEC) over TCP, and again FEC.",
            "A name as `wirelab` begins a sentence. the case does not matter, e.g. here, P. Meenan, and i.e. there.",
        ):
            self.assertEqual(faults(f"# Title\n\n{text}\n"), [], text)
        useful = "/// The rate in bits per second.\nrate: u64,\n/// The rate,\n/// in bits.\nrate: u64,\n"
        self.assertEqual(faults(useful, "code.rs"), [])
        self.assertEqual(faults(f'let nobody = "whom";\nlet long = "{words(40)}";\n', "code.rs"), [])


if __name__ == "__main__":
    unittest.main()
