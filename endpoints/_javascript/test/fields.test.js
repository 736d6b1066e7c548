import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { Unsupported } from '../contract.js';
import { Fields, readSpec } from '../fields.js';

test('a field that nobody took is unsupported, and named', () => {
  const fields = new Fields({ known: 1, other: 2 }, 'spec');
  fields.take('known');
  assert.throws(() => fields.end(), (error) => error instanceof Unsupported && error.message.includes('`other`'));
});

test('null is as good as absent', () => {
  const fields = new Fields({ nothing: null }, 'spec');
  assert.equal(fields.has('nothing'), false);
  fields.end();
});

test('values of another kind are refused', () => {
  const fields = () => new Fields({ count: 1.5, word: 'fast', flag: 'true' }, 'spec');
  assert.throws(() => fields().count('count'), Unsupported);
  assert.throws(() => fields().count('word'), Unsupported);
  assert.throws(() => fields().choose('flag', [true, false]), Unsupported);
  assert.throws(() => fields().text('count'), Unsupported);
  assert.throws(() => fields().take('missing'), Unsupported);
  assert.throws(() => fields().inner('word'), Unsupported);
});

test('a seed keeps its 64 bits, and another version of the contract is refused', (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'wirelab-fields-'));
  t.after(() => fs.rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'spec.json');
  fs.writeFileSync(file, '{"contract":1,"seed":18446744073709551615}');
  assert.equal(readSpec(file).take('seed'), '18446744073709551615');
  fs.writeFileSync(file, '{"contract":2,"seed":1}');
  assert.throws(() => readSpec(file), Unsupported);
});
