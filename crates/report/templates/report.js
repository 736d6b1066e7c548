// The page is complete without this script. It adds: unfolding for links and print, filters, values at the pointer,
// selection of a cell in all charts, zoom, export of charts, and sorting of tables.

const all = (selector, of = document) => [...of.querySelectorAll(selector)];
const made = (name, properties) => Object.assign(document.createElement(name), properties);
// A part of a drawing.
const element = (name, attributes, text = "") => {
  const made = document.createElementNS(document.querySelector("svg").namespaceURI, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
};

// A link to a folded part unfolds it.
const unfold = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
  const folded = target.querySelector("details");
  if (folded) folded.open = true;
  target.scrollIntoView();
};
addEventListener("hashchange", unfold);
unfold();

// Paper has nothing to click on.
let unfolded = [];
addEventListener("beforeprint", () => {
  unfolded = all("details:not([open])");
  for (const part of unfolded) part.open = true;
});
addEventListener("afterprint", () => {
  for (const figure of all("figure.alone")) figure.classList.remove("alone");
  for (const part of unfolded) part.open = false;
});

// The filters hide the facets and tables of other levels. A part without a factor is always shown.
for (const form of all("form.filters")) {
  form.hidden = false;
  form.addEventListener("change", () => {
    const wanted = [...new FormData(form)].filter(([, level]) => level !== "");
    for (const part of all("[data-levels]")) {
      const levels = JSON.parse(part.dataset.levels);
      part.hidden = wanted.some(([factor, level]) => factor in levels && levels[factor] !== level);
    }
  });
}

// Exact values at the pointer. The browser's own tooltip comes late, and not at all on a touch screen.
const tooltip = made("p", { className: "tooltip", hidden: true });
document.body.append(tooltip);
for (const tip of all(".tip")) {
  const title = tip.querySelector("title");
  tip.dataset.facts = title.textContent;
  title.remove();
}
addEventListener("pointerover", (event) => {
  const facts = event.target.dataset?.facts;
  tooltip.hidden = facts === undefined;
  if (tooltip.hidden) return;
  tooltip.textContent = facts;
  const [width, height] = [tooltip.offsetWidth, tooltip.offsetHeight];
  const right = event.clientX + 14 + width > innerWidth;
  tooltip.style.left = `${right ? Math.max(4, event.clientX - 14 - width) : event.clientX + 14}px`;
  tooltip.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - height - 4))}px`;
});

// A click on a mark selects its cell in all charts. A second click, or Escape, ends that.
const selection = made("p", { className: "selection", hidden: true });
selection.setAttribute("role", "status");
document.body.append(selection);
const cellOf = (tip) => tip.dataset.facts.match(/^cell: (.*)$/m)?.[1];
let selected;
const select = (cell) => {
  selected = cell === selected ? undefined : cell;
  for (const tip of all(".tip")) tip.classList.toggle("selected", selected !== undefined && cellOf(tip) === selected);
  selection.hidden = selected === undefined;
  selection.textContent = selection.hidden ? "" : `Selected in all charts: ${selected}. Escape ends the selection.`;
};
addEventListener("click", (event) => {
  const cell = event.target.dataset?.facts === undefined ? undefined : cellOf(event.target);
  if (cell !== undefined) select(cell);
});

// Dragging over a drawing shows that part of it, in the proportions of the whole. A double click, or Escape, shows the
// whole again. On a touch screen dragging scrolls, and two fingers zoom.
const LEAST_DRAG = 6;
const boxOf = (text) => text.split(" ").map(Number);
const whole = (svg) => svg.dataset.whole ?? svg.getAttribute("viewBox");
const show = (svg, box) => {
  svg.dataset.whole = whole(svg);
  svg.setAttribute("viewBox", box);
  svg.classList.toggle("zoomed", box !== whole(svg));
  keepLabels(svg);
};
// The labels of the axes that the part leaves out, at its edges: those of the ticks below, and all to the left of the
// plot. The other labels would lie over marks.
const EDGE = 20;
const keepLabels = (svg) => {
  svg.querySelector(".kept")?.remove();
  if (!svg.classList.contains("zoomed")) return;
  const [left, top, width, height] = boxOf(svg.getAttribute("viewBox"));
  const scale = width / boxOf(whole(svg))[2];
  const plot = Math.min(...all(".s-grid, .s-zero", svg).map((line) => line.getBBox().x));
  const kept = element("g", { class: "kept", "aria-hidden": "true" });
  const keep = (label, place) => {
    const copy = label.cloneNode(true);
    const size = label.getAttribute("font-size") * scale;
    for (const [name, value] of Object.entries({ ...place, "font-size": size, "stroke-width": size / 4 })) copy.setAttribute(name, value);
    kept.append(copy);
  };
  for (const label of all("text:not([transform])", svg)) {
    const [x, y] = ["x", "y"].map((side) => Number(label.getAttribute(side)));
    const box = label.getBBox();
    if (label.classList.contains("f-tick")) {
      if (box.x >= left && box.x + box.width <= left + width && y > top + height) keep(label, { y: top + height - EDGE * scale });
    } else if (box.x + box.width <= plot && box.x < left && y > top && y < top + height) {
      keep(label, { x: left + EDGE * scale, "text-anchor": "start" });
    }
  }
  svg.append(kept);
};
const placeIn = (svg, event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
const partBetween = (one, other, [, , width, height]) => {
  const share = Math.min(1, Math.max(Math.abs(one.x - other.x) / width, Math.abs(one.y - other.y) / height, 0.02));
  const side = (a, b, length) => Math.max(0, Math.min((a + b - share * length) / 2, length - share * length));
  return [side(one.x, other.x, width), side(one.y, other.y, height), share * width, share * height];
};
for (const svg of all(".facet svg")) {
  let from;
  let frame;
  svg.addEventListener("pointerdown", (event) => {
    if (event.button === 0 && event.pointerType !== "touch") from = { x: event.clientX, y: event.clientY, place: placeIn(svg, event) };
  });
  svg.addEventListener("pointermove", (event) => {
    if (!from || (!frame && Math.hypot(event.clientX - from.x, event.clientY - from.y) < LEAST_DRAG)) return;
    if (!frame) {
      // The pointer may leave the drawing, and the click at the end selects no mark.
      svg.setPointerCapture(event.pointerId);
      frame = svg.appendChild(element("rect", { class: "zoom" }));
    }
    const [x, y, width, height] = partBetween(from.place, placeIn(svg, event), boxOf(whole(svg)));
    for (const [name, value] of Object.entries({ x, y, width, height })) frame.setAttribute(name, value);
  });
  const end = (event) => {
    if (frame && event.type === "pointerup") show(svg, partBetween(from.place, placeIn(svg, event), boxOf(whole(svg))).join(" "));
    frame?.remove();
    [from, frame] = [undefined, undefined];
  };
  svg.addEventListener("pointerup", end);
  svg.addEventListener("pointercancel", end);
  svg.addEventListener("dblclick", () => show(svg, whole(svg)));
}
addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  select(undefined);
  for (const svg of all("svg[data-whole]")) show(svg, whole(svg));
});

// Export of a chart as it is shown: without the hidden facets, in the colours of the page.
const STYLES = ["fill", "stroke", "stroke-dasharray", "opacity", "font-family"];
// A drawing without the style sheet of the page.
const plain = (svg, place) => {
  const copy = svg.cloneNode(true);
  const [from, to] = [all("*", svg), all("*", copy)];
  to.forEach((part, number) => {
    const style = getComputedStyle(from[number]);
    for (const name of STYLES) part.setAttribute(name, style.getPropertyValue(name));
    part.removeAttribute("class");
  });
  for (const part of all("[data-facts], .kept", copy)) part.remove();
  for (const name of ["style", "class"]) copy.removeAttribute(name);
  for (const [key, value] of Object.entries(place)) copy.setAttribute(key, value);
  return copy;
};
const shown = (figure) => all(".facet", figure).filter((facet) => facet.getClientRects().length > 0);
const COLUMN = 400;
const drawing = (figure) => {
  const facets = shown(figure).map((facet) => {
    const svg = facet.querySelector("svg");
    const [, , width, height] = boxOf(whole(svg));
    return { svg, title: facet.querySelector("h4")?.textContent ?? "", width: width / 2, height: height / 2 };
  });
  const column = Math.max(COLUMN, ...facets.map((facet) => facet.width + 28));
  const columns = Math.min(facets.length, column > COLUMN ? 1 : 3);
  const row = Math.max(...facets.map((facet) => facet.height)) + 40;
  const ink = getComputedStyle(document.body);
  const text = (x, y, words, size, weight = 400) =>
    element("text", { x, y, fill: ink.color, "font-family": ink.fontFamily, "font-size": size, "font-weight": weight }, words);
  const width = Math.max(columns * column, 720);
  const parts = [text(14, 26, figure.querySelector("h3").textContent, 16, 600)];
  let [x, y] = [14, 40];
  for (const key of all(".legend li", figure)) {
    const length = 60 + key.textContent.trim().length * 6.5;
    if (x + length > width) [x, y] = [14, y + 20];
    parts.push(plain(key.querySelector("svg"), { x, y, width: 28, height: 12 }));
    parts.push(text(x + 34, y + 10, key.lastChild.textContent.trim(), 12));
    x += length;
  }
  const top = y + 30;
  facets.forEach((facet, number) => {
    const [left, above] = [14 + (number % columns) * column, top + Math.floor(number / columns) * row];
    parts.push(text(left, above, facet.title, 12, 600));
    parts.push(plain(facet.svg, { x: left, y: above + 8, width: facet.width, height: facet.height }));
  });
  const height = top + Math.ceil(facets.length / columns) * row;
  const svg = element("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
  svg.append(element("rect", { width, height, fill: ink.backgroundColor }), ...parts);
  return { svg: new XMLSerializer().serializeToString(svg), width, height };
};
const save = (blob, name) => {
  const link = made("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};
const picture = ({ svg, width, height }, then) => {
  const image = new Image();
  image.addEventListener("load", () => {
    const canvas = made("canvas", { width: width * 2, height: height * 2 });
    canvas.getContext("2d").drawImage(image, 0, 0, width * 2, height * 2);
    canvas.toBlob(then, "image/png");
  });
  image.setAttribute("src", `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`);
};
// The facts of the shown marks as rows. A spreadsheet must not run a text as a formula.
const cellOfCsv = (text) => {
  const safe = /^[=+\-@\t\r]/.test(text) && !Number.isFinite(Number(text)) ? `'${text}` : text;
  return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};
const csv = (figure) => {
  const rows = shown(figure).flatMap((facet) =>
    all("[data-facts]", facet).map((tip) => {
      const facts = tip.dataset.facts.split("\n").map((line) => line.split(/: (.*)/s).slice(0, 2));
      return Object.fromEntries([["facet", facet.querySelector("h4")?.textContent ?? ""], ...facts]);
    }),
  );
  const columns = [...new Set(rows.flatMap(Object.keys))];
  const lines = rows.map((row) => columns.map((column) => cellOfCsv(row[column] ?? "")).join(","));
  return [columns.map(cellOfCsv).join(","), ...lines, ""].join("\n");
};
// A heat map is a table. Its drawing has the cells where the page has them, in the colours of the page.
const plainColour = (colour) => {
  const parts = colour.match(/^color\(srgb ([\d.]+) ([\d.]+) ([\d.]+)/);
  return parts ? `rgb(${parts.slice(1).map((part) => Math.round(part * 255)).join(", ")})` : colour;
};
const tableDrawing = (table) => {
  const outer = table.getBoundingClientRect();
  const [width, height] = [Math.ceil(table.scrollWidth), Math.ceil(outer.height)];
  const svg = element("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
  svg.append(element("rect", { width, height, fill: getComputedStyle(document.body).backgroundColor }));
  for (const cell of all("caption, th, td", table)) {
    const [box, style] = [cell.getBoundingClientRect(), getComputedStyle(cell)];
    const [x, y] = [box.x - outer.x, box.y - outer.y];
    const fill = plainColour(style.backgroundColor);
    const edge = cell.tagName === "TD" ? plainColour(style.color) : "none";
    svg.append(element("rect", { x, y, width: box.width, height: box.height, fill, stroke: edge, "stroke-opacity": 0.3 }));
    const lines = cell.innerText.split("\n").filter((line) => line.trim() !== "");
    const size = parseFloat(style.fontSize);
    const isLeft = style.textAlign === "left" || style.textAlign === "start";
    const place = isLeft ? { x: x + 6, "text-anchor": "start" } : { x: x + box.width / 2, "text-anchor": "middle" };
    lines.forEach((line, number) => {
      const baseline = y + box.height / 2 + (number - (lines.length - 1) / 2) * size * 1.3 + size * 0.35;
      const look = { fill: plainColour(style.color), "font-family": style.fontFamily, "font-size": size, "font-weight": style.fontWeight };
      svg.append(element("text", { ...place, y: baseline, ...look }, line.trim()));
    });
  }
  return { svg: new XMLSerializer().serializeToString(svg), width, height };
};
// The cells of a table, with those over several rows or columns in each of them.
const tableCsv = (table) => {
  const grid = [];
  [...table.rows].forEach((row, top) => {
    let left = 0;
    for (const cell of row.cells) {
      while (grid[top]?.[left] !== undefined) left += 1;
      const text = (cell.title || cell.innerText).replaceAll(/\s+/g, " ").trim();
      for (let down = 0; down < cell.rowSpan; down += 1) {
        grid[top + down] ??= [];
        for (let right = 0; right < cell.colSpan; right += 1) grid[top + down][left + right] = text;
      }
    }
  });
  return [...grid.map((row) => row.map(cellOfCsv).join(",")), ""].join("\n");
};
const saveButton = (bar, format, click) => {
  const one = made("button", { type: "button", textContent: format, title: `Save this chart as ${format}` });
  one.addEventListener("click", click);
  bar.append(one);
};
for (const figure of all(".heat")) {
  const table = figure.querySelector("table");
  const bar = made("p", { className: "exports" });
  saveButton(bar, "SVG", () => save(new Blob([tableDrawing(table).svg], { type: "image/svg+xml" }), `${figure.id}.svg`));
  saveButton(bar, "PNG", () => picture(tableDrawing(table), (blob) => save(blob, `${figure.id}.png`)));
  saveButton(bar, "CSV", () => save(new Blob([tableCsv(table)], { type: "text/csv" }), `${figure.id}.csv`));
  table.parentElement.after(bar);
}
for (const figure of all("figure.chart")) {
  const name = figure.id;
  const bar = made("p", { className: "exports" });
  const large = made("button", { type: "button", textContent: "Enlarge" });
  large.title = "Use the whole width. Drag over a drawing to see a part of it; a double click shows the whole again.";
  large.setAttribute("aria-pressed", "false");
  large.addEventListener("click", () => large.setAttribute("aria-pressed", String(figure.classList.toggle("large"))));
  bar.append(large);
  const button = (format, click) => saveButton(bar, format, click);
  button("SVG", () => save(new Blob([drawing(figure).svg], { type: "image/svg+xml" }), `${name}.svg`));
  button("PNG", () => picture(drawing(figure), (blob) => save(blob, `${name}.png`)));
  // The print dialogue saves the chart, which is then the only part on paper, as a vector drawing.
  button("PDF", () => {
    figure.classList.add("alone");
    print();
  });
  if (figure.querySelector(".tip")) {
    button("CSV", () => save(new Blob([csv(figure)], { type: "text/csv" }), `${name}.csv`));
  }
  figure.append(bar);
}

// Sorting of tables by a click on a heading.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.title = [head.title, "Click to sort."].filter(Boolean).join(" ");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => {
        const cell = row.cells[column];
        const text = cell.dataset.sort ?? cell.textContent.trim();
        return text !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
      };
      const order = (a, b) =>
        typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
      const rows = [...body.rows].sort((a, b) => order(key(a), key(b)));
      body.append(...(down ? rows.reverse() : rows));
    });
  });
}
