#!/usr/bin/env python3
"""The chart of the README, from the report of a `quick` run: `make chart`, or `docs/chart.py REPORT.html > docs/quick.svg`.

Takes the facets of the first forest chart out of the report and puts them side by side in one SVG, with the report's colours.
"""

import re
import sys

COLUMNS, WIDTH, HEAD, GAP = 2, 372, 24, 18


def main():
    text = open(sys.argv[1], encoding="utf-8").read()
    style = re.search(r"<style>(.*?)</style>", text, re.S).group(1)
    palettes = re.findall(r":root[^{]*\{([^}]*--paper[^}]*)\}", style)
    light, dark = palettes[0], palettes[1]
    classes = "\n".join(re.findall(r"^(?:circle)?\.[fs]-.*$", style, re.M))
    figure = re.search(r'<figure class="chart" id="forest-response_median">(.*?)</figure>', text, re.S).group(1)
    facets = re.findall(r'<div class="facet"><h4>(.*?)</h4><svg viewBox="0 0 (\d+) (\d+)"[^>]*>(.*?)</svg>', figure, re.S)
    height = max(int(h) * WIDTH / int(w) for _, w, h, _ in facets)
    rows = -(-len(facets) // COLUMNS)
    whole = (COLUMNS * (WIDTH + GAP) + GAP, rows * (HEAD + height + GAP) + GAP)
    variables = lambda palette: "".join(part.strip() + ";" for part in palette.split(";") if "--" in part)
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole[0]} {whole[1]:g}" font-family="sans-serif">')
    print("<title>Median response time over TLS 1.3 on loopback, as a ratio to HTTP/1.1, with 95 % intervals</title>")
    print(f"<style>svg {{ {variables(light)} }}\n@media (prefers-color-scheme: dark) {{ svg {{ {variables(dark)} }} }}\n{classes}</style>")
    print('<rect width="100%" height="100%" style="fill: var(--paper)"/>')
    for number, (title, w, h, body) in enumerate(facets):
        x, y = GAP + number % COLUMNS * (WIDTH + GAP), GAP + number // COLUMNS * (HEAD + height + GAP)
        print(f'<text x="{x}" y="{y + 12:g}" font-size="13" font-weight="600" class="f-muted">{title}</text>')
        print(f'<svg x="{x}" y="{y + HEAD:g}" width="{WIDTH}" height="{int(h) * WIDTH / int(w):g}" viewBox="0 0 {w} {h}">{body}</svg>')
    print("</svg>")


if __name__ == "__main__":
    main()
