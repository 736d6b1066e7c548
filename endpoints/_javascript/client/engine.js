// Prepares, warms up, measures. It knows no protocol.

import { createHash } from 'node:crypto';

import { alarm } from '../alarm.js';
import { now } from '../clock.js';
import { Failure } from '../contract.js';
import { Lane, Pool } from './lanes.js';
import { Exchange, judge } from './pending.js';
import { Limit, arrivals, pauses } from './schedule.js';

/** Tickets to store if an open loop does not limit the number of open connections. */
const TICKETS_FOR_OPEN_LOOP = 64;

/** A late open loop starts the due requests, but reads responses again after at most this time. */
const LONGEST_TURN_NS = 200_000;

export class Engine {
  #recorder = null; // set while the window lasts
  #numbers = 0;
  firstFailure = null;
  lastEnd = 0;

  constructor(job, library, tickets) {
    this.job = job;
    this.library = library;
    this.tickets = tickets;
    this.pool = new Pool(this);
  }

  nextNumber() {
    return this.#numbers++;
  }

  /** One request on a connection of its own, with a full check of the response. Returns the active settings of the connection. */
  async check() {
    const { job } = this;
    const what = `${job.method} ${job.path} from ${job.address} port ${job.port} over ${job.protocol.name}`;
    const digest = createHash('sha256');
    try {
      const facts = await this.#once((bytes) => digest.update(bytes));
      if (job.expect !== null) this.#checkDigest(digest.digest('hex'));
      return facts;
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      throw new Failure(error.kind, `the check request (${what}) failed: ${error.message}`);
    }
  }

  #checkDigest(sha256) {
    if (sha256 === this.job.expect.sha256) return;
    throw new Failure('digest', `the response has the SHA-256 ${sha256} instead of ${this.job.expect.sha256}`);
  }

  async #once(sink) {
    const lane = new Lane(this, null);
    const start = now();
    lane.record.begin(start, start);
    let connection = null;
    try {
      connection = await lane.connect(lane.record);
      const exchange = new Exchange(sink);
      await lane.exchange(connection, exchange, start);
      judge(this.job, exchange);
    } catch (error) {
      lane.drop(connection); // a close in good order might wait for ever
      throw error;
    } finally {
      lane.deadline.end();
    }
    const facts = this.library.facts(this.job, connection);
    await connection.close();
    return facts;
  }

  /** Opens and closes connections until the store has a ticket for each simultaneous connection. */
  async prime() {
    if (this.job.resumption === 'none') return;
    const wanted = this.job.connections || this.job.workers || TICKETS_FOR_OPEN_LOOP;
    for (let before = -1; this.tickets.count < wanted && this.tickets.count > before; ) {
      before = this.tickets.count;
      await this.#once(null);
    }
  }

  async open() {
    await this.pool.open();
    if (this.job.rate > 0 || this.job.pause !== null) alarm.start();
    if (this.job.warmUp !== null) await this.#send('warm-up', this.job.warmUp, now());
  }

  /** The measured window, from `zero` on; records go to `recorder`. Returns the end of its last request. */
  async measure(zero, recorder) {
    this.#numbers = this.pool.renumber();
    this.#recorder = recorder;
    this.lastEnd = zero;
    await this.#send('measured', this.job.extent, zero);
    this.#recorder = null;
    this.pool.rest();
    return this.lastEnd;
  }

  async #send(phase, extent, start) {
    const limit = new Limit(extent, start);
    if (this.job.rate > 0) return this.#openLoop(phase, limit, start);
    const workers = Array.from({ length: this.job.workers }, (_, number) => this.#work(phase, limit, start, number));
    await Promise.all(workers);
  }

  /** One worker of a closed loop. */
  async #work(phase, limit, start, number) {
    const { job, pool } = this;
    const pause = job.pause && pauses(job.pause, job.seed, phase, number);
    for (let intended = start; ; ) {
      if (intended > now()) await alarm.until(intended);
      let lane = pool.take();
      if (!(lane instanceof Lane)) lane = await lane;
      // The start decides: "none starts after the end".
      if (!limit.take(Math.max(now(), intended))) return pool.put(lane);
      const end = await this.#perform(lane, intended);
      pool.put(lane);
      // Without a pause, the intended start is the moment when the worker is free, which is now.
      intended = pause ? end + pause() : now();
    }
  }

  /**
   * Starts a request at each arrival, independent of the earlier ones.
   *
   * If no connection or stream is free, a request waits in line, its response time running since its arrival. A request of
   * the period is sent even after its end: to drop it would leave out the slowest requests. The wait has a
   * limit, the request time-out after the end; what waits longer fails by time-out.
   */
  async #openLoop(phase, limit, start) {
    const { job, pool } = this;
    const line = [];
    const carriers = new Set();
    let latestStart = Infinity;
    let resumed = now();
    const carry = async (lane, first) => {
      for (let intended = first; intended !== undefined; intended = line.shift()) {
        if (now() > latestStart) this.#giveUp(lane.record, intended);
        else await this.#perform(lane, intended);
      }
      pool.put(lane);
    };
    for (const offset of arrivals(job.arrivals, job.rate, job.seed, phase)) {
      const arrival = start + offset;
      if (!limit.take(arrival)) break;
      const moment = now();
      if (arrival > moment || moment - resumed > LONGEST_TURN_NS) {
        await (arrival > moment ? alarm.until(arrival) : new Promise(setImmediate));
        resumed = now();
      }
      const lane = pool.tryTake();
      if (lane === null) {
        line.push(arrival);
        continue;
      }
      const carrier = carry(lane, arrival);
      carriers.add(carrier);
      carrier.then(() => carriers.delete(carrier));
    }
    latestStart = now() + job.requestNs;
    await Promise.all(carriers);
  }

  /** Sends one request over a lane and records it. Returns the end. */
  async #perform(lane, intended) {
    const { job } = this;
    const { record } = lane;
    const exchange = new Exchange();
    const start = now();
    record.begin(intended, start);
    let connection = lane.ready;
    let failure = null;
    let ended = false;
    try {
      if (connection === null) connection = await lane.connect(record);
      else record.connection = lane.link.number;
      record.end = await lane.exchange(connection, exchange, start);
      ended = true;
      judge(job, exchange);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      failure = error;
      if (!ended) record.end = now();
    }
    this.#note(record, exchange, connection, failure);
    if (lane.link === null) {
      if (failure === null) await connection.close();
      else lane.drop(connection);
    } else if (failure !== null && !(job.protocol.multiplexes && connection?.isOpen)) {
      lane.drop(connection);
    }
    return record.end;
  }

  #note(record, exchange, connection, failure) {
    if (exchange.firstByte !== null) record.firstByte = exchange.firstByte;
    if (exchange.status !== null) record.status = exchange.status;
    record.bytesIn = exchange.bytesIn;
    record.bytesOut = exchange.bytesOut;
    if (record.opened && connection !== null) record.handshake = connection.handshake;
    this.#keep(record, failure);
  }

  #giveUp(record, intended) {
    record.begin(intended, now());
    const why = 'the request waited for a free connection until its time-out after the end of the window';
    this.#keep(record, new Failure('timeout', why));
  }

  #keep(record, failure) {
    if (this.#recorder === null) return;
    if (failure !== null) {
      record.error = failure.kind;
      this.firstFailure ??= failure;
    }
    this.lastEnd = Math.max(this.lastEnd, record.end);
    this.#recorder.push(record);
  }
}
