"""Pages as the rules see them: source lines, and blocks of prose without code, addresses and markup."""

import re
from dataclasses import dataclass, field

CODE = "\N{SECTION SIGN}"  # stands for a code span; counts as one word
FENCE = re.compile(r"\s*(```|~~~)")
HEADING = re.compile(r"#{1,6} +")
ITEM = re.compile(r"(\s*)(?:[-*+]|\d+[.)]) +")
COMMENT = re.compile(r"\s*//[/!]? ?(.*)")
HASH_COMMENT = re.compile(r"\s*# ?(.*)")
OTHER_COMMENT = re.compile(r"\s*(?://+|#|\*|/\*\*?) ?(.*?)(?:\*/)?")
STRING = re.compile(r'"((?:[^"\\]|\\.)* (?:[^"\\]|\\.)*)"?')
INLINE = [
    (re.compile(r"<!--.*?-->", re.S), ""),
    (re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.S), CODE),
    (re.compile(r"!?\[((?:[^][]|\[[^]]*\])*)\]\([^()\s]*(?:\([^()]*\))?[^()]*\)"), r"\1"),
    (re.compile(r"<?\b[a-z]+://[^\s>)]+[^\s>).,:;]>?"), CODE),
    (re.compile(r"<br/?>"), ". "),
    (re.compile(r"</?[a-zA-Z][^>]*>"), ""),
    (re.compile(r"\*\*|(?<!\w)[*_]+|(?<=\w)[*_]+(?!\w)"), ""),
]
# A full stop ends a sentence, but not after an initial or an abbreviation.
END = re.compile(r"(?<!\b[A-Z])(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\bn\.a)(?<!\bet al)(?<!\.\.)[.!?][\"')]*\s+")


@dataclass
class Block:
    """A paragraph, item, heading or table cell."""

    kind: str
    line: int
    text: str

    def sentences(self):
        """Each sentence with its number of words and its line."""
        begin = 0
        for end in [*(match.end() for match in END.finditer(self.text)), len(self.text)]:
            sentence = self.text[begin:end].strip()
            words = sum(any(c.isalnum() or c == CODE for c in word) for word in sentence.split())
            if re.search(r"[A-Za-z]", sentence):
                yield sentence, words, self.line_of(begin)
            begin = end

    def line_of(self, position):
        return self.line + self.text[:position].count("\n")


@dataclass
class Page:
    name: str
    lines: list  # (number, source line) of prose: no code, no tables
    blocks: list = field(default_factory=list)
    source: str = ""

    def add(self, kind, line, text):
        for pattern, by in INLINE:
            # The number of lines stays, for the numbers in messages.
            text = pattern.sub(lambda match: match.expand(by) + "\n" * (match[0].count("\n") - match.expand(by).count("\n")), text)
        if text.strip():
            self.blocks.append(Block(kind, line, text))


def markdown(name, source):
    """The prose of a Markdown page."""
    page = Page(name, [])
    kind, begin, text = None, 0, []
    fenced, blank, indent = False, True, 0

    def close():
        nonlocal kind, text
        if text:
            page.add(kind, begin, "\n".join(text))
        kind, text = None, []

    for number, line in enumerate(source.split("\n"), 1):
        bare = line.strip()
        depth = len(line) - len(line.lstrip())
        if FENCE.match(line):
            close()
            fenced = not fenced
        elif fenced or (depth >= indent + 4 and (blank or kind == "code")):
            kind = None if fenced else "code"
        elif not bare:
            close()
        elif bare.startswith("|"):
            close()
            if not re.fullmatch(r"[|\s:-]+", bare):
                for cell in re.split(r"(?<!\\)\|", bare.strip("|")):
                    page.add("cell", number, cell)
        else:
            page.lines.append((number, line))
            item = ITEM.match(line)
            if HEADING.match(line):
                close()
                page.add("heading", number, HEADING.sub("", line))
                indent = 0
            elif item:
                close()
                kind, begin, text, indent = "item", number, [line[item.end() :]], item.end()
            else:
                if blank and depth == 0:
                    indent = 0
                if kind not in ("paragraph", "item"):
                    kind, begin, text = "paragraph", number, []
                text.append(bare)
        blank = not bare
    close()
    return page


def rust(name, source):
    """The comments of a Rust file, and its texts: string literals with a space, line by line."""
    return code(name, source, COMMENT)


def toml(name, source):
    """The comments and texts of a TOML file."""
    return code(name, source, HASH_COMMENT)


def other(name, source):
    """The comments and texts of a file in another language."""
    return code(name, source, OTHER_COMMENT)


def code(name, source, comments):
    page = Page(name, [], source=source)
    begin, text = 0, []
    for number, line in enumerate([*source.split("\n"), ""], 1):
        comment = comments.fullmatch(line)
        if comment:
            page.lines.append((number, line))
        if comment and comment[1].strip() and not ITEM.match(comment[1]):
            if not text:
                begin = number
            text.append(comment[1])
            continue
        if text:
            page.add("paragraph", begin, "\n".join(text))
        text = []
        if comment and comment[1].strip():
            begin, text = number, [comment[1]]
        elif not comment:
            page.blocks += [Block("text", number, literal) for literal in STRING.findall(line)]
    return page
