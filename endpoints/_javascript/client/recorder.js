// The records of requests during the window, and the results made of them afterwards.
//
// Records are numbers in flat arrays that were allocated and touched before: nothing for the garbage collector to trace.

import fs from 'node:fs';

const ERRORS = ['refused', 'unreachable', 'certificate', 'tls', 'protocol', 'reset', 'truncated', 'timeout', 'status',
  'digest', 'lost', 'other'];
const HANDSHAKES = ['full', 'resumed', 'early_accepted', 'early_rejected'];

const TIMES = ['intended_ns', 'start_ns', 'connected_ns', 'handshake_ns', 'first_byte_ns', 'last_byte_ns'];
const ABSENT = -1;
const [BYTES_OUT, BYTES_IN, STATUS, CONNECTION, HANDSHAKE, ERROR, WIDTH] = [6, 7, 8, 9, 10, 11, 12];

const PIECE = 1 << 15; // records
const MOST_ALLOCATED = 500_000; // records: 48 MB
const GUESSED_NS = 50_000; // per request, where a duration ends the window

/** One request, as the engine saw it; used again for the next one of its lane. */
export class Record {
  begin(intended, start) {
    this.intended = Math.min(intended, start);
    this.start = start;
    this.connected = this.handshakeDone = this.firstByte = ABSENT;
    this.end = start;
    this.bytesOut = this.bytesIn = 0;
    this.status = ABSENT;
    this.connection = 0;
    this.opened = false;
    this.handshake = this.error = null;
  }
}

/** Keeps every request. */
export class Samples {
  #pieces = [];
  #count = 0;

  constructor(job) {
    const guess = job.rate > 0 ? (job.rate * job.extent.durationNs) / 1e9 : job.extent.durationNs / GUESSED_NS;
    const expected = Math.min(job.extent.requests ?? guess, MOST_ALLOCATED);
    while (this.#pieces.length * PIECE < expected) this.#pieces.push(new Float64Array(PIECE * WIDTH).fill(ABSENT));
  }

  push(record) {
    const place = this.#count % PIECE;
    const number = (this.#count - place) / PIECE;
    if (number === this.#pieces.length) this.#pieces.push(new Float64Array(PIECE * WIDTH));
    this.#count += 1;
    const into = this.#pieces[number];
    let at = place * WIDTH;
    into[at++] = record.intended;
    into[at++] = record.start;
    into[at++] = record.connected;
    into[at++] = record.handshakeDone;
    into[at++] = record.firstByte;
    into[at++] = record.end;
    into[at++] = record.bytesOut;
    into[at++] = record.bytesIn;
    into[at++] = record.status;
    into[at++] = record.connection;
    into[at++] = record.handshake === null ? ABSENT : HANDSHAKES.indexOf(record.handshake);
    into[at] = record.error === null ? ABSENT : ERRORS.indexOf(record.error);
  }

  *#rows() {
    for (let i = 0; i < this.#count; i++) {
      const at = (i % PIECE) * WIDTH;
      yield this.#pieces[Math.floor(i / PIECE)].subarray(at, at + WIDTH);
    }
  }

  /** The number of succeeded requests, and of failed ones by kind. */
  counts() {
    const errors = {};
    let requests = 0;
    for (const row of this.#rows()) {
      if (row[ERROR] === ABSENT) requests += 1;
      else errors[ERRORS[row[ERROR]]] = (errors[ERRORS[row[ERROR]]] ?? 0) + 1;
    }
    return { requests, errors };
  }

  write(path, zero) {
    const file = fs.openSync(path, 'w');
    let text = '';
    for (const row of this.#rows()) {
      text += `${JSON.stringify(sample(row, zero))}\n`;
      if (text.length > 1 << 20) {
        fs.writeSync(file, text);
        text = '';
      }
    }
    fs.writeSync(file, text);
    fs.closeSync(file);
  }
}

function sample(row, zero) {
  const fields = {};
  TIMES.forEach((name, at) => {
    if (row[at] !== ABSENT) fields[name] = row[at] - zero;
  });
  fields.bytes_out = row[BYTES_OUT];
  fields.bytes_in = row[BYTES_IN];
  if (row[STATUS] !== ABSENT) fields.status = row[STATUS];
  fields.connection = row[CONNECTION];
  if (row[HANDSHAKE] !== ABSENT) fields.handshake = HANDSHAKES[row[HANDSHAKE]];
  if (row[ERROR] !== ABSENT) fields.error = ERRORS[row[ERROR]];
  return fields;
}
