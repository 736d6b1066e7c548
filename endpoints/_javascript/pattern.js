// The body of every generated message: the byte at offset i is i mod 251.

const PERIOD = 251;

/** The first `size` bytes of the pattern. */
export function pattern(size) {
  const body = Buffer.allocUnsafe(size);
  for (let i = 0; i < Math.min(size, PERIOD); i++) body[i] = i;
  for (let filled = PERIOD; filled < size; filled *= 2) body.copy(body, filled, 0, Math.min(filled, size - filled));
  return body;
}

/** Whole periods, so that pieces of this size follow each other without a seam: about 64 KB. */
const PIECE = pattern(PERIOD * 261);

/** The pattern of any size in pieces, without copying. */
export function* pieces(size) {
  for (let left = size; left > 0; left -= PIECE.length) yield left < PIECE.length ? PIECE.subarray(0, left) : PIECE;
}
