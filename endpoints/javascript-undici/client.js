// The client: one `undici.Client`, which has one connection, for each connection of the spec. The socket is opened here, so
// that its times are seen; undici does the rest.

import { Client } from 'undici';

import { now } from '../_javascript/clock.js';
import { rehearsal as rehearse } from '../_javascript/node/rehearsal.js';
import { activeSettings, readTransport } from '../_javascript/node/settings.js';
import { negotiated, open } from '../_javascript/node/sockets.js';

const HOUR_MS = 3_600_000;

/** undici's default windows, in bytes. It does not show its active values, but announces these. */
const STREAM_WINDOW = 262_144;
const CONNECTION_WINDOW = 524_288;

export function abilities(protocol) {
  return {
    resumption: ['none', 'resume'], // Node has no interface for early data
    keyLog: true,
    qlog: false,
    readTransport: (fields) => readTransport(fields, protocol),
  };
}

export function connect(job, attempt, tickets) {
  job.message ??= message(job);
  job.options ??= options(job);
  open(job, attempt, tickets, (opened) => attempt.done(new Connection(job, opened, tickets)));
}

export function configured(job) {
  const facts = activeSettings(job.transport);
  if (job.protocol.isHttp2) {
    facts.stream_window = job.transport.streamWindow ?? STREAM_WINDOW;
    facts.connection_window = job.transport.connectionWindow ?? CONNECTION_WINDOW;
  }
  return facts;
}

export function facts(job, connection) {
  return { ...configured(job), ...(job.tls ? negotiated(connection.socket) : {}) };
}

/** undici speaks HTTP/2 only after ALPN, and the rehearsal has no TLS: its HTTP/1.1 warms the common code. */
export function rehearsal(job) {
  return job.protocol.isHttp2 ? null : rehearse(job);
}

function options(job) {
  const { streamWindow, connectionWindow } = job.transport;
  const windows = {
    initialWindowSize: streamWindow ?? STREAM_WINDOW,
    connectionWindowSize: connectionWindow ?? CONNECTION_WINDOW,
    maxConcurrentStreams: Math.max(job.streams, 100), // its default is 100
  };
  return {
    allowH2: job.protocol.isHttp2,
    ...(job.protocol.isHttp2 ? windows : { pipelining: 1 }),
    // Connections are kept however long they idle; deadlines are the engine's.
    keepAliveTimeout: HOUR_MS,
    keepAliveMaxTimeout: HOUR_MS,
    headersTimeout: 0,
    bodyTimeout: 0,
  };
}

/** The common part of all requests, made once. */
function message(job) {
  const headers = { host: job.serverName, ...job.furtherHeaders };
  // Each is sent once and alone: without this, undici would hold a POST back until all others have ended.
  return { method: job.method, path: job.path, headers, body: job.body, idempotent: true };
}

class Connection {
  hasAborted = false;

  constructor(job, opened, tickets) {
    Object.assign(this, { job, tickets, opened, socket: opened.socket, watch: opened.watch });
    this.connected = opened.connected;
    this.handshakeDone = opened.handshakeDone;
    this.handshake = opened.handshake;
    let socket = this.socket;
    const once = (_, done) => {
      const one = socket;
      socket = null;
      if (one) return queueMicrotask(() => done(null, one)); // undici hangs if this happens at once
      done(Object.assign(new Error('the connection was lost before the request was sent'), { code: 'ECONNRESET' }));
    };
    const origin = `${job.tls ? 'https' : 'http'}://${job.address.includes(':') ? `[${job.address}]` : job.address}`;
    this.client = new Client(origin, { ...job.options, connect: once });
    this.client.on('connectionError', () => {}); // requests hear of it
  }

  get isOpen() {
    return !this.client.destroyed && !this.socket.destroyed && !this.watch.ended && this.watch.error === null;
  }

  request(exchange) {
    exchange.bytesOut = this.job.bodySize;
    this.client.dispatch(this.job.message, new Handler(exchange, this));
  }

  failure(error) {
    // In Node, errors of the parser have a code (HPE_...). undici 7.30 tries the same, but with a table of another form.
    if (error.name === 'HTTPParserError' && !this.watch.ended) error.code ??= 'HPE_INVALID';
    return this.watch.failure(`${this.job.method} ${this.job.path}`, error);
  }

  async close() {
    if (this.job.resumption !== 'none') await this.tickets.settle(this.opened.hasTicket);
    if (this.hasAborted) return this.destroy(); // undici would wait for aborted requests
    await this.client.close();
  }

  destroy() {
    this.client.destroy().catch(() => {});
    this.socket.destroy();
  }
}

/** Hears of one response. */
class Handler {
  constructor(exchange, connection) {
    this.exchange = exchange;
    this.connection = connection;
  }

  onRequestStart(controller) {
    this.exchange.abandon = () => {
      this.connection.hasAborted = true;
      controller.abort(new Error('the deadline passed'));
    };
  }

  onResponseStart(_, status) {
    this.exchange.head(status, now());
  }

  onResponseData(_, bytes) {
    this.exchange.piece(bytes);
  }

  onResponseEnd() {
    this.exchange.done(now());
  }

  onResponseError(_, error) {
    this.exchange.fail(this.connection.failure(error));
  }
}
