import assert from 'node:assert/strict';
import { test } from 'node:test';

import { now } from '../clock.js';
import { Failure } from '../contract.js';
import { Engine } from '../client/engine.js';
import { Tickets } from '../client/tickets.js';
import { Protocol } from '../protocols.js';

const EXPECT = { status: 200, size: 5 };

/** A job with the fields that the engine reads. */
function job(changes) {
  return {
    protocol: new Protocol('h2c'),
    connections: 0,
    streams: 1,
    workers: 1,
    rate: 0,
    pause: null,
    extent: { requests: 6 },
    warmUp: null,
    resumption: 'none',
    expect: EXPECT,
    connectNs: 10e9,
    requestNs: 10e9,
    seed: '7',
    ...changes,
  };
}

/** A library without a network: connections respond as configured, and record the number of requests in flight. */
class Library {
  opened = 0;
  closed = 0;
  destroyed = 0;
  inFlight = 0;
  most = 0;
  begin = () => {};

  constructor(answer = (exchange) => this.respond(exchange)) {
    this.answer = answer;
  }

  connect(_, attempt) {
    this.opened += 1;
    const connection = { isOpen: true, connected: now(), handshakeDone: null, handshake: null };
    connection.request = (exchange) => {
      this.begin(exchange);
      this.inFlight += 1;
      this.most = Math.max(this.most, this.inFlight);
      setImmediate(() => {
        this.inFlight -= 1;
        this.answer(exchange, connection);
      });
    };
    connection.close = async () => void (this.closed += 1);
    connection.destroy = () => {
      this.destroyed += 1;
      connection.isOpen = false;
    };
    attempt.done(connection);
  }

  respond(exchange, size = 5) {
    exchange.head(200, now());
    exchange.piece(Buffer.alloc(size));
    exchange.done(now());
  }
}

async function records(library, changes) {
  const engine = new Engine(job(changes), library, new Tickets());
  await engine.open();
  const kept = [];
  await engine.measure(now(), { push: (record) => kept.push({ ...record }) });
  await engine.pool.close();
  return kept;
}

test('every request has a connection of its own, numbered from 0, closed after it', async () => {
  const library = new Library();
  const kept = await records(library, { workers: 2 });
  assert.deepEqual(kept.map((record) => record.connection).sort(), [0, 1, 2, 3, 4, 5]);
  assert.ok(kept.every((record) => record.opened && record.error === null && record.connected >= record.start));
  assert.deepEqual([library.opened, library.closed], [6, 6]);
});

test('persistent connections are opened before the window, and shared by as many workers as they have streams', async () => {
  const library = new Library();
  const kept = await records(library, { connections: 2, streams: 2, workers: 7, extent: { requests: 40 } });
  assert.equal(kept.length, 40);
  assert.deepEqual([...new Set(kept.map((record) => record.connection))].sort(), [0, 1]);
  assert.ok(kept.every((record) => !record.opened && record.connected < 0));
  assert.deepEqual([library.opened, library.closed, library.most], [2, 2, 4]);
});

test('the warm-up is not recorded', async () => {
  const kept = await records(new Library(), { warmUp: { requests: 9 } });
  assert.equal(kept.length, 6);
  assert.equal(Math.max(...kept.map((record) => record.connection)), 5);
});

test('a failed request is a record, and the next one replaces the connection that broke', async () => {
  let requests = 0;
  const library = new Library((exchange, connection) => {
    requests += 1;
    if (requests !== 2) return library.respond(exchange);
    connection.isOpen = false;
    exchange.fail(new Failure('reset', 'on purpose'));
  });
  const kept = await records(library, { connections: 1, extent: { requests: 4 } });
  assert.deepEqual(kept.map((record) => record.error), [null, 'reset', null, null]);
  assert.deepEqual(kept.map((record) => record.opened), [false, false, true, false]);
  assert.deepEqual(kept.map((record) => record.connection), [0, 0, 1, 1]);
});

test('wrong sizes and statuses are told apart', async () => {
  const sizes = [4, 6];
  const library = new Library((exchange) => {
    const size = sizes.shift();
    if (size !== undefined) return library.respond(exchange, size);
    exchange.head(503, now());
    exchange.done(now());
  });
  const kept = await records(library, { extent: { requests: 3 } });
  assert.deepEqual(kept.map((record) => record.error), ['truncated', 'digest', 'status']);
});

test('a deadline that passes fails the request, abandons it, and keeps a connection that multiplexes', async () => {
  let abandoned = 0;
  const library = new Library(() => {}); // never answers
  library.begin = (exchange) => (exchange.abandon = () => (abandoned += 1));
  const kept = await records(library, { connections: 1, extent: { requests: 2 }, requestNs: 5e6 });
  assert.deepEqual(kept.map((record) => record.error), ['timeout', 'timeout']);
  assert.ok(kept.every((record) => record.end - record.start >= 5e6));
  assert.deepEqual([abandoned, library.opened, library.destroyed], [2, 1, 0]);
});

test('a connection that does not come in time fails its request, and is destroyed when it comes late', async () => {
  const library = new Library();
  const late = [];
  library.connect = (_, attempt) => late.push(attempt);
  const kept = await records(library, { extent: { requests: 1 }, connectNs: 5e6 });
  assert.deepEqual(kept.map((record) => [record.error, record.status]), [['timeout', -1]]);
  let destroyed = 0;
  late[0].done({ destroy: () => (destroyed += 1) });
  assert.equal(destroyed, 1);
});

test('an open loop starts its requests at their times, whatever became of earlier ones', async () => {
  const held = [];
  const library = new Library((exchange) => {
    held.push(exchange);
    if (held.length === 6) for (const one of held) library.respond(one); // all at once, after the last arrival
  });
  const kept = await records(library, { workers: 0, rate: 500, arrivals: 'uniform' });
  const intended = kept.map((record) => record.intended).sort((a, b) => a - b);
  assert.deepEqual(intended.map((at) => at - intended[0]), [0, 2e6, 4e6, 6e6, 8e6, 10e6]);
  assert.ok(kept.every((record) => record.error === null && record.start >= record.intended));
  assert.equal(held.length, 6);
});

test('in an open loop arrivals wait in line for the only connection, with their own intended starts', async () => {
  const library = new Library();
  const kept = await records(library, { workers: 0, rate: 1e6, arrivals: 'uniform', connections: 1, extent: { requests: 20 } });
  const intended = kept.map((record) => record.intended);
  assert.deepEqual(intended.map((at) => at - intended[0]), Array.from({ length: 20 }, (_, i) => i * 1000));
  assert.equal(library.most, 1);
});

test('a check request that fails does not wait for a polite close', async () => {
  const library = new Library((exchange, connection) => {
    connection.close = () => new Promise(() => {}); // never ends
    exchange.fail(new Failure('reset', 'on purpose'));
  });
  const engine = new Engine(job({ method: 'GET', path: '/', address: '127.0.0.1', port: 1 }), library, new Tickets());
  await assert.rejects(engine.check(), (error) => error.kind === 'reset' && error.message.includes('GET /'));
  assert.equal(library.destroyed, 1);
});
