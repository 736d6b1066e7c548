// HTTP/2 by `node:http2`.

import http2 from 'node:http2';

import { now } from '../clock.js';
import { activeSettings } from './settings.js';
import { negotiated, open } from './sockets.js';

const MEMORY_MB = 1024; // for a session; by default 10, which ends sessions with many streams

export function connect(job, attempt, tickets) {
  open(job, attempt, tickets, (opened) => attempt.done(new Connection(job, opened, tickets)));
}

class Connection {
  constructor(job, opened, tickets) {
    Object.assign(this, { job, tickets, watch: opened.watch, opened });
    this.connected = opened.connected;
    this.handshakeDone = opened.handshakeDone;
    this.handshake = opened.handshake;
    job.message ??= message(job);
    const { streamWindow, connectionWindow } = job.transport;
    const settings = { enablePush: false };
    if (streamWindow) settings.initialWindowSize = streamWindow;
    const createConnection = () => opened.socket;
    this.session = http2.connect('http://connected', { createConnection, settings, maxSessionMemory: MEMORY_MB });
    if (connectionWindow) this.session.setLocalWindowSize(connectionWindow);
    this.session.on('error', () => {}); // the watch has noted it, and the streams report it
  }

  get isOpen() {
    return !this.session.closed && !this.session.destroyed && !this.watch.ended && this.watch.error === null;
  }

  request(exchange) {
    const failed = (error) => exchange.fail(this.watch.failure(`${this.job.method} ${this.job.path}`, error));
    let stream;
    try {
      stream = this.session.request(this.job.message, { endStream: this.job.body === null });
    } catch (error) {
      return failed(error);
    }
    let complete = false;
    exchange.abandon = () => stream.close(http2.constants.NGHTTP2_CANCEL);
    stream.on('response', (headers) => exchange.head(headers[':status'], now()));
    stream.on('data', (bytes) => exchange.piece(bytes));
    stream.on('end', () => {
      complete = stream.rstCode === 0 && !stream.aborted && exchange.status !== null;
      if (complete) exchange.done(now());
    });
    stream.on('error', failed);
    stream.on('close', () => complete || failed(null));
    exchange.bytesOut = this.job.bodySize;
    if (this.job.body) stream.end(this.job.body);
  }

  facts() {
    const windows = activeSettings(this.job.transport, this.session);
    return this.job.tls ? { ...windows, ...negotiated(this.opened.socket) } : windows;
  }

  async close() {
    if (this.job.resumption !== 'none') await this.tickets.settle(this.opened.hasTicket);
    this.session.close();
  }

  destroy() {
    this.session.destroy();
  }
}

/** The common part of all requests, made once. */
function message(job) {
  const headers = {
    ':method': job.method,
    ':scheme': job.tls ? 'https' : 'http',
    ':authority': job.serverName,
    ':path': job.path,
    ...job.furtherHeaders,
  };
  if (job.hasLength) headers['content-length'] = String(job.bodySize);
  return headers;
}
