// Suggestions for a TOML study by its JSON Schema. No part of this file touches the page.
"use strict";

const complete = (() => {
  let schema = {};
  let words = {};

  // The schema itself and all its alternatives, without references.
  const alternatives = (node) => {
    if (!node || typeof node !== "object") return [];
    if (node.$ref) return alternatives(schema.$defs[node.$ref.split("/").pop()]);
    return [node, ...[...(node.anyOf ?? []), ...(node.oneOf ?? [])].flatMap(alternatives)];
  };
  // The keys of a table, or of the tables of a list.
  const tables = (node) => alternatives(node).flatMap((one) => (one.items ? alternatives(one.items) : [one]));
  const fields = (node) => Object.assign({}, ...tables(node).map((one) => one.properties ?? {}));
  const child = (node, key) => {
    for (const one of alternatives(node)) {
      const found = one.properties?.[key] ?? one.additionalProperties;
      if (found && typeof found === "object") return found;
      if (one.items && alternatives(one.items).some((item) => item.properties)) return child(one.items, key);
    }
    return {};
  };
  const isTable = (node) => alternatives(node).some((one) => one.properties || typeof one.additionalProperties === "object");
  const isList = (node) => alternatives(node).some((one) => alternatives(one.items).some((item) => item.properties));
  const settings = () => child(schema, "workload");

  const about = (node) => alternatives(node).map((one) => one.description).concat(node?.description ?? "").find(Boolean) ?? "";

  // Values as TOML, each with its description.
  const values = (node) => {
    const found = new Map();
    const add = (value, text) => {
      if (value === null || typeof value === "object") return;
      const written = JSON.stringify(value);
      if (!found.has(written)) found.set(written, text ?? "");
    };
    const walk = (one) => {
      if ("const" in one) add(one.const, one.description);
      for (const value of one.enum ?? []) add(value);
      if ([one.type].flat().includes("boolean")) [true, false].forEach((value) => add(value));
      for (const value of one.examples ?? []) add(value, "example");
      add(one.default ?? null, "default");
      alternatives(one.items).forEach(walk);
    };
    if (node?.default !== undefined) add(node.default, "default");
    alternatives(node).forEach(walk);
    return [...found].map(([insert, text]) => ({ insert, about: text }));
  };

  // The keys from the root to the table of the last line, and the names that this table has.
  const surroundings = (lines) => {
    let path = [];
    let used = [];
    for (const line of lines) {
      const table = line.match(/^\s*\[{1,2}\s*([^\]]+?)\s*\]{1,2}/);
      if (table) {
        path = table[1].split(".").map((part) => part.trim().replace(/^["']|["']$/g, ""));
        used = [];
      } else {
        const key = line.match(/^\s*([\w-]+)\s*=/);
        if (key) used.push(key[1]);
      }
    }
    return { path, used };
  };

  // The factors of a text: names of tables below `factors`, and keys of the table itself.
  const factors = (text) => {
    const found = new Set();
    let inFactors = false;
    for (const line of text.split("\n")) {
      const table = line.match(/^\s*\[{1,2}\s*([^\]]+?)\s*\]{1,2}/)?.[1].split(".");
      if (table) inFactors = table.length === 1 && table[0] === "factors";
      if (table?.[0] === "factors" && table[1]) found.add(table[1]);
      const key = line.match(/^\s*([\w-]+)\s*=/);
      if (inFactors && key) found.add(key[1]);
    }
    return [...found];
  };

  const begins = (options, begun) => options.filter((option) => option.insert.startsWith(begun) && option.insert !== begun);

  // What may follow at an offset: the first offset to replace, and the options.
  const at = (text, caret) => {
    const before = text.slice(0, caret);
    const lines = before.split("\n");
    const line = lines.pop();
    const { path, used } = surroundings(lines);
    const node = path.reduce(child, schema);
    const isFactors = path.length === 1 && path[0] === "factors";

    const table = line.match(/^\s*(\[{1,2}[\w.-]*)$/);
    if (table) {
      const tables = Object.entries(fields(schema)).filter(([, one]) => isTable(one) || isList(one));
      const options = tables.map(([name, one]) => ({ insert: isList(one) ? `[[${name}]]` : `[${name}]`, about: about(one) }));
      return { from: caret - table[1].length, options: begins(options, table[1]) };
    }
    const key = line.match(/^\s*([\w-]*)$/);
    if (key) {
      const known = Object.entries(isFactors ? fields(settings()) : fields(node));
      const fitting = known.filter(([name, one]) => !used.includes(name) && (path.length > 0 || !isTable(one) && !isList(one)));
      const options = fitting.map(([name, one]) => ({ insert: `${name} = `, about: about(one) }));
      return { from: caret - key[1].length, options: begins(options, key[1]) };
    }
    const value = line.match(/^\s*([\w-]+)\s*=\s*(.*)$/);
    if (!value) return { from: caret, options: [] };
    const begun = value[2].match(/"[^"]*$|[\w-]*$/)[0];
    // A closed string is complete.
    if ((value[2].match(/"/g) ?? []).length % 2 === 0 && /["\]]\s*$/.test(value[2])) return { from: caret, options: [] };
    const dotted = [...path, value[1]].join(".");
    const named = dotted === "compare.factor" ? factors(text) : words[dotted] ?? [];
    const known = values(isFactors ? child(settings(), value[1]) : child(node, value[1]));
    const also = named.map((word) => ({ insert: JSON.stringify(word), about: "" }));
    const options = [...known, ...also.filter((one) => known.every((other) => other.insert !== one.insert))];
    const fitting = begin(options, begun);
    return { from: caret - begun.length, options: fitting };
  };
  // A word without its quotation mark fits, too.
  const begin = (options, begun) => {
    const word = begun.replace(/^"/, "");
    return options.filter(({ insert }) => insert !== begun && (insert.startsWith(begun) || insert.startsWith(`"${word}`)));
  };

  return { at, learn: (found) => { schema = found.schema; words = found.words; } };
})();
