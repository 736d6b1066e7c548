// The object that a library reports to. It ends once, by success or by failure; later reports have no effect.

import { Failure } from '../contract.js';

class Pending {
  settled = false;
  /** Gives up the work; set by the library, called by the engine after a deadline passed. */
  abandon = () => {};

  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  fail(failure) {
    if (this.settled) return;
    this.settled = true;
    this.reject(failure);
  }
}

/** A connection that is being opened. */
export class Attempt extends Pending {
  done(connection) {
    if (this.settled) return connection.destroy();
    this.settled = true;
    this.resolve(connection);
  }
}

/** A request under way. The library notes events as they come. */
export class Exchange extends Pending {
  status = null;
  firstByte = null;
  bytesIn = 0;
  bytesOut = 0;

  /** `sink` gets the body's pieces. */
  constructor(sink = null) {
    super();
    this.sink = sink;
  }

  head(status, at) {
    this.status = status;
    this.firstByte ??= at;
  }

  piece(bytes) {
    this.bytesIn += bytes.length;
    if (this.sink !== null) this.sink(bytes);
  }

  /** The response is complete. */
  done(at) {
    if (this.settled) return;
    this.settled = true;
    this.resolve(at);
  }
}

/** Throws if a complete response is wrong. */
export function judge(job, exchange) {
  const { status, bytesIn } = exchange;
  const said = `the server answered with status ${status}`;
  if (job.expect === null) {
    // To measure a redirect instead of its target would give a wrong number that looks right. 304 is no redirect.
    if (status >= 300 && status < 400 && status !== 304) throw new Failure('status', `${said}, which is not followed`);
    if (status >= 400) throw new Failure('status', said);
    return;
  }
  if (status !== job.expect.status) throw new Failure('status', `${said} instead of ${job.expect.status}`);
  const size = `the response has ${bytesIn} bytes instead of ${job.expect.size}`;
  if (bytesIn < job.expect.size) throw new Failure('truncated', size);
  if (bytesIn > job.expect.size) throw new Failure('digest', size);
}
