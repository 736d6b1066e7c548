// The client: one session of the library for each connection. Sockets, packets and timers are a native thread's, which all
// sessions share; JavaScript sends requests and hears of events.

import net from 'node:net';

import { connect as open } from '@currentspace/http3';

import { now } from '../_javascript/clock.js';
import { Failure } from '../_javascript/contract.js';
import { closed, failure } from './faults.js';

const H3_REQUEST_CANCELLED = 0x10c; // RFC 9114, section 8.1
const IDLE_MS = 3_600_000; // connections are kept however long they idle

/** The library's default windows, in bytes. It does not show its active values, but announces these. */
const STREAM_WINDOW = 2_000_000;
const CONNECTION_WINDOW = 100_000_000;

export function abilities() {
  return {
    resumption: ['none'], // the library does not tell whether a session was resumed
    keyLog: false, // the library's option writes nothing
    qlog: true,
    readTransport: (fields) => ({
      streamWindow: fields.count('stream_window', { fallback: STREAM_WINDOW }),
      connectionWindow: fields.count('connection_window', { fallback: CONNECTION_WINDOW }),
    }),
  };
}

export function configured(job) {
  const { streamWindow, connectionWindow } = job.transport;
  return { threads: 1, stream_window: streamWindow, connection_window: connectionWindow };
}

export function facts(job, connection) {
  const { alpnProtocol, runtimeInfo } = connection.session;
  return { ...configured(job), alpn: alpnProtocol, driver: runtimeInfo?.driver ?? undefined };
}

export function connect(job, attempt) {
  job.message ??= message(job);
  const session = open(address(job), options(job));
  const connection = new Connection(job, session);
  attempt.abandon = () => connection.destroy();
  session.on('error', (error) => attempt.fail(failure(`connecting to ${address(job)}`, error)));
  session.on('close', (info) => attempt.fail(closed(`connecting to ${address(job)}`, info)));
  session.on('connect', () => {
    connection.handshakeDone = now();
    if (session.alpnProtocol === job.protocol.alpn) return attempt.done(connection);
    attempt.fail(new Failure('protocol', `${session.alpnProtocol} was negotiated (ALPN) instead of ${job.protocol.alpn}`));
    connection.destroy();
  });
}

const address = ({ address, port }) => (net.isIPv6(address) ? `[${address}]:${port}` : `${address}:${port}`);

function options(job) {
  return {
    servername: job.serverName,
    ca: job.tls.ca,
    rejectUnauthorized: job.tls.verify,
    initialMaxStreamDataBidiLocal: job.transport.streamWindow,
    initialMaxData: job.transport.connectionWindow,
    connectTimeoutMs: 0, // deadlines are the engine's
    maxIdleTimeoutMs: IDLE_MS,
    metricsIntervalMs: 0,
    ...(job.qlogDir ? { qlogDir: job.qlogDir } : {}),
  };
}

/** The common part of all requests, made once. */
function message(job) {
  const headers = {
    ':method': job.method,
    ':scheme': 'https',
    ':authority': job.serverName,
    ':path': job.path,
    ...job.furtherHeaders,
  };
  if (job.hasLength) headers['content-length'] = String(job.bodySize);
  return headers;
}

class Connection {
  connected = null; // QUIC has no such moment apart from the handshake
  handshakeDone = null;
  handshake = 'full'; // no ticket is ever given to the library
  isOpen = true;

  constructor(job, session) {
    this.job = job;
    this.session = session;
    this.end = null;
    const gone = () => (this.isOpen = false);
    session.on('goaway', gone);
    session.on('error', gone);
    session.on('close', (info) => {
      gone();
      this.end = info;
    });
  }

  request(exchange) {
    const what = `${this.job.method} ${this.job.path}`;
    const failed = (error) => exchange.fail(this.end?.errorCode ? closed(what, this.end) : failure(what, error));
    let stream;
    try {
      stream = this.session.request(this.job.message, { endStream: this.job.body === null });
    } catch (error) {
      return failed(error);
    }
    exchange.abandon = () => stream.close(H3_REQUEST_CANCELLED);
    stream.on('response', (headers) => exchange.head(Number(headers[':status']), now()));
    stream.on('data', (bytes) => exchange.piece(bytes));
    stream.on('end', () => exchange.done(now()));
    stream.on('error', failed);
    stream.on('aborted', () => failed(null));
    stream.on('close', () => failed(null));
    exchange.bytesOut = this.job.bodySize;
    if (this.job.body) stream.end(this.job.body);
  }

  async close() {
    this.isOpen = false;
    await this.session.close();
  }

  destroy() {
    this.isOpen = false;
    this.session.destroy().catch(() => {});
  }
}
