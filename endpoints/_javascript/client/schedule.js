// When requests are to start: nothing here knows of responses.

import { random } from '../random.js';

/** How many requests may still start, or until when. */
export class Limit {
  constructor(extent, start) {
    this.left = extent.requests ?? Infinity;
    this.end = extent.durationNs === undefined ? Infinity : start + extent.durationNs;
  }

  /** Takes one request that is to start at `at`; false: there is none left. */
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
    // From the number of the arrival, not by adding up: rounding errors do not accumulate.
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
