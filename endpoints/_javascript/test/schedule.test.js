import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Limit, arrivals, pauses } from '../client/schedule.js';

const first = (count, generator) => Array.from({ length: count }, () => generator.next().value);

test('uniform arrivals are at equal intervals, and rounding does not add up', () => {
  assert.deepEqual(first(4, arrivals('uniform', 1000, '7', 'measured')), [0, 1e6, 2e6, 3e6]);
  const far = first(300_001, arrivals('uniform', 3000, '7', 'measured'));
  assert.equal(far.at(-1), 100e9);
});

test('Poisson arrivals have the rate and the spread of a Poisson process, and follow from the seed', () => {
  const times = first(20_000, arrivals('poisson', 1000, '7', 'measured'));
  assert.deepEqual(times, first(20_000, arrivals('poisson', 1000, '7', 'measured')));
  assert.notDeepEqual(times, first(20_000, arrivals('poisson', 1000, '8', 'measured')));
  assert.notDeepEqual(times, first(20_000, arrivals('poisson', 1000, '7', 'warm-up')));
  const gaps = times.slice(1).map((time, i) => (time - times[i]) / 1e6);
  const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
  const variance = gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gaps.length;
  // An exponential distribution's variance is the square of its mean. Standard errors here: 0.007 and 0.02.
  assert.ok(Math.abs(mean - 1) < 0.03, `${mean}`);
  assert.ok(Math.abs(variance - 1) < 0.1, `${variance}`);
});

test('seeds that differ only beyond 53 bits give other numbers', () => {
  const times = (seed) => first(5, arrivals('poisson', 1000, seed, 'measured'));
  assert.notDeepEqual(times('18446744073709551615'), times('18446744073709551614'));
});

test('pauses lie between their limits, and every worker has its own', () => {
  const draws = (worker) => {
    const next = pauses([10, 20], '7', 'measured', worker);
    return Array.from({ length: 1000 }, next);
  };
  assert.equal(Math.min(...draws(0)), 10);
  assert.equal(Math.max(...draws(0)), 20);
  assert.notDeepEqual(draws(0), draws(1));
});

test('a limit ends by count or by time', () => {
  const count = new Limit({ requests: 2 }, 0);
  assert.deepEqual([count.take(5), count.take(5), count.take(5)], [true, true, false]);
  const time = new Limit({ durationNs: 10 }, 100);
  assert.deepEqual([time.take(109), time.take(110)], [true, false]);
});
