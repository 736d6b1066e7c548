// The start times of requests: nothing here depends on responses.

import { random } from '../random.js';

/** The number of requests that may still start, or the latest start. */
export class Limit {
  constructor(extent, start) {
    this.left = extent.requests ?? Infinity;
    this.end = extent.durationNs === undefined ? Infinity : start + extent.durationNs;
  }

  /** Takes one request that starts at `at`; false: none is left. */
  take(at) {
    if (this.left <= 0 || at >= this.end) return false;
    this.left -= 1;
    return true;
  }
}

/** The arrival times of an open loop, in whole nanoseconds from its start; without end. */
export function* arrivals(kind, ratePerS, seed, phase) {
  const interval = 1e9 / ratePerS;
  if (kind === 'uniform') {
    // Computed from the number of the arrival, not as a sum, so rounding errors do not accumulate.
    for (let number = 0; ; number++) yield Math.floor(number * interval);
  }
  const draw = random(seed, phase, 'arrivals');
  for (let at = 0; ; ) {
    at -= Math.log(1 - draw()) * interval; // exponentially distributed
    yield Math.floor(at);
  }
}

/** The pauses of one worker of a closed loop, in whole nanoseconds. */
export function pauses([shortest, longest], seed, phase, worker) {
  const draw = random(seed, phase, worker);
  return () => shortest + Math.floor(draw() * (longest - shortest + 1));
}
