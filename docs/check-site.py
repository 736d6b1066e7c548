#!/usr/bin/env python3
"""Checks that every link of a built site leads to a file of it. The tests check the anchors, in the sources."""
import html.parser
import pathlib
import sys
import urllib.parse

site = pathlib.Path(sys.argv[1]).resolve()
broken = []


class Links(html.parser.HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.page = page

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name not in ("href", "src") or not value:
                continue
            link = urllib.parse.urlsplit(value)
            if link.scheme or link.netloc or not link.path:
                continue
            target = (self.page.parent / urllib.parse.unquote(link.path)).resolve()
            if not target.is_file() and not (target / "index.html").is_file():
                broken.append(f"{self.page.relative_to(site)}: {value}")


for page in sorted(site.rglob("*.html")):
    # The page for printing contains all others, with their relative links; 404 has no fixed place; reports have no links.
    if page.name in ("print.html", "404.html") or page.parent.name == "gallery":
        continue
    Links(page).feed(page.read_text(encoding="utf-8"))
if broken:
    sys.exit("links that lead nowhere:\n" + "\n".join(broken))
