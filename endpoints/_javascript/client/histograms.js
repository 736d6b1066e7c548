// Distributions in place of records, where a spec asks for them.

import fs from 'node:fs';
import zlib from 'node:zlib';

import hdr from 'hdr-histogram-js';

const HOUR_NS = 3_600_000_000_000;

/** Before the deflated bytes: a cookie and their number, four bytes each. */
const ENVELOPE = 8;

/** The places of the indices' offset and of the ratio between values and integers in the header. */
const [OFFSET, RATIO] = [8, 32];

/** Counts every request. */
export class Histograms {
  #of = Object.fromEntries(
    ['response', 'service', 'lag', 'handshake', 'first_byte', 'failure'].map((name) => [name, new Distribution()]),
  );
  #sums = { requests: 0, errors: {}, bytes_in: 0, bytes_out: 0, connections: 0, handshakes: {} };

  push(record) {
    const [of, sums] = [this.#of, this.#sums];
    of.lag.add(record.start - record.intended);
    if (record.opened) sums.connections += 1;
    if (record.handshake !== null) sums.handshakes[record.handshake] = (sums.handshakes[record.handshake] ?? 0) + 1;
    if (record.error !== null) {
      sums.errors[record.error] = (sums.errors[record.error] ?? 0) + 1;
      of.failure.add(record.end - record.intended);
      return;
    }
    sums.requests += 1;
    sums.bytes_in += record.bytesIn;
    sums.bytes_out += record.bytesOut;
    of.response.add(record.end - record.intended);
    of.service.add(record.end - record.start);
    if (record.firstByte >= 0) of.first_byte.add(record.firstByte - record.start);
    const ready = record.handshakeDone >= 0 ? record.handshakeDone : record.connected;
    if (record.opened && ready >= 0) of.handshake.add(ready - record.start);
  }

  counts() {
    return { requests: this.#sums.requests, errors: this.#sums.errors };
  }

  write(path) {
    const of = Object.entries(this.#of).map(([name, distribution]) => [name, distribution.finish()]);
    fs.writeFileSync(path, `${JSON.stringify({ ...Object.fromEntries(of), ...this.#sums })}\n`);
  }
}

/** An HDR histogram with exact extremes and sum. */
export class Distribution {
  #histogram = hdr.build({
    lowestDiscernibleValue: 1,
    highestTrackableValue: HOUR_NS, // it grows for more
    numberOfSignificantValueDigits: 3,
    bitBucketSize: 64,
    autoResize: true,
    useWebAssembly: false,
  });
  #count = 0;
  #min = Infinity;
  #max = 0;
  #sum = 0;

  add(ns) {
    this.#histogram.recordValue(ns);
    this.#count += 1;
    this.#min = Math.min(this.#min, ns);
    this.#max = Math.max(this.#max, ns);
    this.#sum += ns;
  }

  finish() {
    if (this.#count === 0) return { v2: '', count: 0, min_ns: 0, max_ns: 0, sum_ns: 0 };
    const v2 = encode(this.#histogram).toString('base64');
    return { v2, count: this.#count, min_ns: this.#min, max_ns: this.#max, sum_ns: this.#sum };
  }
}

/** The V2 encoding. The library offers it only deflated, and writes two header fields unlike other readers expect. */
function encode(histogram) {
  const deflated = Buffer.from(hdr.encodeIntoCompressedBase64(histogram), 'base64');
  const bytes = zlib.inflateSync(deflated.subarray(ENVELOPE, ENVELOPE + deflated.readInt32BE(4)));
  bytes.writeInt32BE(0, OFFSET); // the library wrongly writes 1
  bytes.writeDoubleBE(1, RATIO); // the library writes an integer
  return bytes;
}
