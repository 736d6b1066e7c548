import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { pattern, pieces } from '../pattern.js';
import { Site } from '../server/site.js';

test('the byte at offset i is i mod 251, whole or in pieces', () => {
  for (const size of [0, 1, 250, 251, 252, 1000, 70_000, 300_007]) {
    const body = pattern(size);
    assert.equal(body.length, size);
    assert.ok(body.every((byte, i) => byte === i % 251), `${size}`);
    assert.ok(Buffer.concat([...pieces(size)]).equals(body), `${size} in pieces`);
  }
});

test('a site answers what it was asked to offer, and nothing outside its root', (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'wirelab-site-'));
  t.after(() => fs.rmSync(folder, { recursive: true }));
  const root = path.join(folder, 'documents');
  fs.mkdirSync(path.join(root, 'inner'), { recursive: true });
  fs.writeFileSync(path.join(folder, 'secret'), 'secret');
  fs.writeFileSync(path.join(root, 'inner', 'a.bin'), 'document');
  fs.symlinkSync(path.join(folder, 'secret'), path.join(root, 'link'));
  const site = new Site(['files', 'bytes', 'delay'], root);
  assert.equal(site.reply('GET', '/inner/a.bin?query').body.toString(), 'document');
  for (const target of ['/', '/inner', '/link', '/../secret', '/%2e%2e/secret', '//secret']) {
    assert.deepEqual(site.reply('GET', target), { kind: 'status', code: 404 }, target);
  }
  assert.deepEqual(site.reply('GET', '/bytes/7'), { kind: 'pattern', size: 7 });
  assert.deepEqual(site.reply('GET', '/bytes/-7'), { kind: 'status', code: 400 });
  assert.deepEqual(site.reply('GET', '/delay/20'), { kind: 'delay', ns: 20_000 });
  assert.deepEqual(site.reply('POST', '/echo'), { kind: 'status', code: 405 }, 'it was not asked to offer it');
});
