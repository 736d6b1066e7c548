import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Distribution } from '../client/histograms.js';

test('a distribution of nothing is empty', () => {
  assert.deepEqual(new Distribution().finish(), { v2: '', count: 0, min_ns: 0, max_ns: 0, sum_ns: 0 });
});

test('the encoding is V2, not deflated, as the example of the contract has it', () => {
  // The example keeps its values with limited precision only; every reader reads its header.
  const example = Buffer.from('HISTEwAAAA0AAAAAAAAAAwAAAAAAAAABAAADRjC4oAA/8AAAAAAAAKGUAQKTCAK1AwK5BgI=', 'base64');
  const distribution = new Distribution();
  for (const ns of [332_054, 463_798, 529_721, 732_666]) distribution.add(ns);
  const bytes = Buffer.from(distribution.finish().v2, 'base64');
  assert.deepEqual(bytes.subarray(0, 4), example.subarray(0, 4)); // cookie
  assert.equal(bytes.readInt32BE(4), bytes.length - 40); // payload
  assert.deepEqual(bytes.subarray(8, 40), example.subarray(8, 40)); // offset, digits, limits, ratio
});

test('the counts can be read back: zigzag numbers, of which negative ones are runs of empty slots', () => {
  const distribution = new Distribution();
  for (const ns of [1, 1, 3, 2047]) distribution.add(ns); // all within the slots of one nanosecond each
  const bytes = Buffer.from(distribution.finish().v2, 'base64').subarray(40);
  const counts = [];
  for (const number of zigzag(bytes)) counts.push(...(number < 0 ? Array(-number).fill(0) : [number]));
  assert.deepEqual([counts[1], counts[2], counts[3], counts[2047]], [2, 0, 1, 1]);
  assert.equal(counts.length, 2048);
});

test('extremes and sum are exact', () => {
  const distribution = new Distribution();
  for (const ns of [100_001, 7_200_000_000_001, 5]) distribution.add(ns);
  const { v2, ...exact } = distribution.finish();
  assert.deepEqual(exact, { count: 3, min_ns: 5, max_ns: 7_200_000_000_001, sum_ns: 7_200_000_100_007 });
  assert.notEqual(v2, '');
});

function* zigzag(bytes) {
  for (let at = 0; at < bytes.length; ) {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++];
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) break;
    }
    yield value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }
}
