// Seeded randomness: the same seed gives the same numbers, and each use has a stream of its own.

import { createHash } from 'node:crypto';

/** Returns a function that draws uniformly from [0, 1): sfc32, seeded by a digest of all that tells streams apart. */
export function random(seed, ...stream) {
  const digest = createHash('sha256').update([seed, ...stream].join('/')).digest();
  let [a, b, c, counter] = [0, 4, 8, 12].map((at) => digest.readInt32LE(at));
  const draw = () => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum;
    return sum >>> 0;
  };
  // 53 bits of two draws, as many as a number has.
  return () => ((draw() >>> 5) * 67108864 + (draw() >>> 6)) / 9007199254740992;
}
