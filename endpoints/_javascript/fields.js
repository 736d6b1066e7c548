// Reading a spec so that no field can be ignored.

import fs from 'node:fs';

import { Unsupported, VERSION } from './contract.js';

/** A JSON object. Every field must be taken: one that is left at the end is unsupported. A null field counts as absent. */
export class Fields {
  #left;

  constructor(value, where) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw new Unsupported(`${where} is not an object`);
    }
    this.where = where;
    this.#left = new Map(Object.entries(value).filter(([, held]) => held !== null));
  }

  has(name) {
    return this.#left.has(name);
  }

  take(name, fallback) {
    if (!this.has(name)) {
      if (fallback === undefined) throw new Unsupported(`${this.where}: the field \`${name}\` is missing`);
      return fallback;
    }
    const value = this.#left.get(name);
    this.#left.delete(name);
    return value;
  }

  /** Takes a field whose value must be one of the known ones. */
  choose(name, known, fallback) {
    const value = this.take(name, fallback);
    if (!known.includes(value)) {
      const all = known.map((one) => JSON.stringify(one)).join(', ') || 'nothing';
      throw new Unsupported(`${this.where}: \`${name}\` = ${JSON.stringify(value)}; supported: ${all}`);
    }
    return value;
  }

  text(name, fallback) {
    const value = this.take(name, fallback);
    if (typeof value === 'string' || value === fallback) return value;
    throw new Unsupported(`${this.where}: \`${name}\` = ${JSON.stringify(value)}; supported: texts`);
  }

  /** Takes a whole number. */
  count(name, { least = 1, most = Number.MAX_SAFE_INTEGER, fallback } = {}) {
    const value = this.take(name, fallback);
    if (value === fallback) return value;
    if (!Number.isInteger(value) || value < least || value > most) {
      throw new Unsupported(`${this.where}: \`${name}\` = ${value}; supported: whole numbers from ${least} to ${most}`);
    }
    return value;
  }

  inner(name, fallback) {
    return new Fields(this.take(name, fallback), `${this.where}.${name}`);
  }

  end() {
    if (this.#left.size > 0) {
      const names = [...this.#left.keys()].map((name) => `\`${name}\``).join(', ');
      throw new Unsupported(`${this.where}: cannot honour ${names}`);
    }
  }
}

export function readSpec(path) {
  const text = fs.readFileSync(path, 'utf8');
  const value = JSON.parse(text);
  // A seed has 64 bits; a number would keep 53. Only a key can stand before a colon, and only one has this name.
  const seed = /"seed"\s*:\s*(\d+)/.exec(text);
  if (seed && value.seed !== undefined) value.seed = seed[1];
  const spec = new Fields(value, 'spec');
  spec.choose('contract', [VERSION]);
  return spec;
}
