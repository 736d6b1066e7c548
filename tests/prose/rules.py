"""The rules of prose. Each takes a page and yields (line, rule, message)."""

import re

AVERAGE, LONGEST, COLUMNS = 25, 35, 120
LONG_WORD = 60  # a line with such a word is as long as its address or path

NOUN = "the noun"
PERSON = "a noun that names the person or part"
# Words that hide the subject of a sentence, and the plain words for them.
PHRASES = {
    r"(?:no|some|any|every)body(?:'s)?": PERSON,
    r"anyone(?:'s)?": PERSON,
    r"who(?:so)?ever(?:'s)?": PERSON,
    r"whom(?:ever)?": PERSON,
    r"of which": "the noun itself, in a sentence of its own",
    r"what there is(?: to [a-z]+)?": NOUN,
    r"what (?:is|are|was|were) to be": NOUN,
    r"(?:is|are|was|were) to (?:be|have|do|find|say|see|know|go|come|get|hold|keep|serve|send|answer)": "'must', 'should', or the plain verb",
    r"(?:is|are|was|were|be|been|being) told": "'receives', 'reads' or 'is configured'",
    r"those (?:that|which|who)": NOUN,
    r"the ones? (?:that|which|who)": NOUN,
    r"such (?:a|an) one": NOUN,
    r"(?:what was )?in force": "'active' or 'set'",
    r"as far as (?:is|was|are|it is) known(?: here)?": "what is known, and what is not",
    r"of (?:ours|theirs|yours|mine|his|hers)": "'our', 'their', 'your', or the name of the owner",
    r"nothing (?:can|could|is to|was to) be said": "'the value is missing'",
    r"to say of|(?:be )?said of|says of": "'reports' or 'about'",
    r"all (?:that|there) is": "'all' and the noun",
    r"utili[sz]e[sd]?": "'use'",
    r"in order to": "'to'",
    r"due to the fact that": "'because'",
    r"(?:it should be )?note[d]? that": "nothing",
}
PHRASE = re.compile(r"\b(?:%s)\b" % "|".join(f"({pattern})" for pattern in PHRASES), re.I)
REMEDIES = list(PHRASES.values())
# "There is a server that answers" has no subject; "A server answers" has one.
OPENING = re.compile(
    r"\W*(There (?:is|are|was|were|will be|has been|have been)\b|It (?:is|was) (?:not )?\w+ (?:that|which|who)\b|Of (?!course\b|the\b|\d|\{))"
)
ABBREVIATION = re.compile(r"(?<![.$\w-])([A-Z]{2}[A-Z0-9]*)s?(?![\w.]\w)\b")
# An item of Rust, a field or a variant, with its name.
ITEM = re.compile(r"(?:pub(?:\([a-z ]+\))? )?(?:(?:const|async|unsafe|static|fn|struct|enum|trait|type|mod) )*([A-Za-z]\w*)")
EMPTY_WORDS = set("the a an of its in for this to is and as by are on it".split())
DEFINITION = re.compile(r"((?:[\w-]+\s+){1,7})\(([A-Z]{2}[A-Z0-9]*)s?\)")


def phrases(page):
    for block in page.blocks:
        for match in PHRASE.finditer(block.text):
            found = " ".join(match[0].split())
            yield block.line_of(match.start()), "phrase", f"'{found}': write {REMEDIES[match.lastindex - 1]}"


def openings(page):
    for block in page.blocks:
        for sentence, _, line in block.sentences():
            if match := OPENING.match(sentence):
                yield line, "opening", f"'{match[1]}' opens a sentence: begin with the subject"


def sentence_length(page):
    for block in page.blocks:
        for sentence, words, line in block.sentences():
            if words > LONGEST:
                yield line, "sentence", f"{words} words in a sentence, at most {LONGEST}: {sentence[:40]!r}"


def average(page):
    lengths = [words for block in page.blocks if block.kind in ("paragraph", "item") for _, words, _ in block.sentences()]
    if lengths and sum(lengths) > AVERAGE * len(lengths):
        yield 1, "average", f"{sum(lengths) / len(lengths):.1f} words in a sentence on average on this page, at most {AVERAGE}"


def line_length(page):
    for number, line in page.lines:
        if len(line) > COLUMNS and max(map(len, line.split())) < LONG_WORD:
            yield number, "line", f"{len(line)} columns, at most {COLUMNS}"


def paraphrases(page):
    """A doc comment in Rust whose words are all in the name of its item."""
    lines = page.source.split("\n")
    for number, line in enumerate(lines):
        doc = re.match(r"\s*/// (.*)", line)
        if not doc or (number > 0 and lines[number - 1].lstrip().startswith("///")):
            continue
        below = (other.strip() for other in lines[number + 1 :])
        item = ITEM.match(next((other for other in below if not other.startswith("#[")), ""))
        if item and stems(doc[1]) and stems(doc[1]) <= stems(re.sub(r"([a-z])([A-Z])", r"\1 \2", item[1])):
            yield number + 1, "paraphrase", f"'{doc[1]}' repeats the name `{item[1]}`: say more, or delete it"


def stems(text):
    words = re.findall(r"[a-z0-9]+", text.lower().replace("_", " "))
    return {re.sub(r"(ies|es|s|ed|ing|e)$", "", word) for word in words if word not in EMPTY_WORDS}


def abbreviations(known):
    """The rule for abbreviations: the glossary knows them, or the page writes them out at the first use."""

    def rule(page):
        explained = set(known)
        for block in page.blocks:
            defined = {}
            for words, name in DEFINITION.findall(block.text):
                if any(word[0].upper() == name[0] for word in words.split()):
                    defined.setdefault(name, block.text.index(f"({name}"))
            for match in ABBREVIATION.finditer(block.text):
                name = match[1]
                if name not in explained and not defined.get(name, len(block.text)) < match.start():
                    yield block.line_of(match.start()), "abbreviation", f"'{name}' is neither in docs/glossary.md nor written out before"
            explained.update(defined)

    return rule


def glossary(source):
    """The abbreviations that the glossary defines: bold capitals in the first column of its tables."""
    cells = (line.split("|")[1] for line in source.split("\n") if line.startswith("| **"))
    return {name for cell in cells for name in re.findall(r"\*\*([A-Z][A-Z0-9]+)\*\*", cell)}
