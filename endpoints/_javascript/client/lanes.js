// Lanes: each carries one request at a time, over a connection (or a stream's worth of one).

import { now } from '../clock.js';
import { Failure } from '../contract.js';
import { Deadline } from './deadline.js';
import { Attempt } from './pending.js';
import { Record } from './recorder.js';

/** A persistent connection, shared by the lanes that have a stream of it. */
class Link {
  connection = null;
  number = 0;
  opening = null; // its promise, while one lane opens the connection and the others wait
}

/** Carries one request at a time. */
export class Lane {
  deadline = new Deadline();
  record = new Record();

  constructor(engine, link) {
    this.engine = engine;
    this.link = link;
  }

  /** The open connection, if any. */
  get ready() {
    const connection = this.link?.connection;
    return connection?.isOpen ? connection : null;
  }

  /** Opens a connection, or waits for the lane that is opening it. Notes in the record what this request opened. */
  async connect(record) {
    const { engine, link } = this;
    if (link === null) {
      record.connection = engine.nextNumber();
      return this.#open(record);
    }
    if (link.opening !== null) {
      const connection = await this.#inTime(link.opening, record);
      record.connection = link.number;
      return connection;
    }
    link.number = record.connection = engine.nextNumber();
    link.opening = this.#open(record);
    try {
      link.connection = await link.opening;
    } finally {
      link.opening = null;
    }
    return link.connection;
  }

  async #open(record) {
    const { engine } = this;
    const attempt = new Attempt();
    record.opened = true;
    this.#guard(attempt, record);
    engine.library.connect(engine.job, attempt, engine.tickets);
    const connection = await attempt.promise;
    this.deadline.lift();
    // A connection may have been ready before this was noticed; its own times are the right ones.
    record.connected = connection.connected ?? -1;
    record.handshakeDone = connection.handshakeDone ?? -1;
    return connection;
  }

  #guard(pending, record) {
    const { job } = this.engine;
    const limit = Math.min(job.connectNs, job.requestNs);
    this.deadline.set(record.start + limit, () => {
      pending.fail(new Failure('timeout', `connecting took longer than ${limit / 1e6} ms`));
      pending.abandon();
    });
  }

  async #inTime(opening, record) {
    const attempt = new Attempt();
    this.#guard(attempt, record);
    opening.then(attempt.resolve, attempt.reject);
    const connection = await attempt.promise;
    this.deadline.lift();
    return connection;
  }

  /** Sends a request and waits for the end of its response. */
  async exchange(connection, exchange, start) {
    const { job } = this.engine;
    this.deadline.set(start + job.requestNs, () => {
      exchange.fail(new Failure('timeout', `the response was not complete after ${job.requestNs / 1e6} ms`));
      exchange.abandon();
    });
    connection.request(exchange);
    const end = await exchange.promise;
    this.deadline.lift();
    return end;
  }

  /** Drops a connection that cannot carry further requests. */
  drop(connection) {
    this.deadline.lift();
    connection?.destroy();
    if (this.link !== null && this.link.connection === connection) this.link.connection = null;
  }
}

/** The lanes. A request takes one, and waits in line if all are taken. */
export class Pool {
  #free = [];
  #line = [];
  #all = [];
  #links = [];

  constructor(engine) {
    this.engine = engine;
    const { connections, streams } = engine.job;
    this.#links = Array.from({ length: connections }, () => new Link());
    // Successive lanes belong to different connections, to spread the requests over all of them.
    for (let stream = 0; stream < streams; stream++) for (const link of this.#links) this.put(this.#add(link));
  }

  #add(link) {
    const lane = new Lane(this.engine, link);
    this.#all.push(lane);
    return lane;
  }

  /** Opens all persistent connections. */
  async open() {
    for (const lane of this.#free.slice(0, this.#links.length)) {
      lane.record.begin(now(), now());
      await lane.connect(lane.record);
    }
  }

  /** Numbers the kept connections from 0, and returns their number. */
  renumber() {
    this.#links.forEach((link, number) => (link.number = number));
    return this.#links.length;
  }

  tryTake() {
    return this.#free.shift() ?? (this.#links.length === 0 ? this.#add(null) : null);
  }

  /** A lane, first come, first served. */
  take() {
    return this.tryTake() ?? new Promise((resolve) => this.#line.push(resolve));
  }

  put(lane) {
    const next = this.#line.shift();
    if (next) next(lane);
    else this.#free.push(lane);
  }

  /** No timer of a lane runs any more. */
  rest() {
    for (const lane of this.#all) lane.deadline.end();
  }

  async close() {
    await Promise.all(this.#links.map((link) => link.connection?.close()));
  }
}
