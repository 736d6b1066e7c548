// HTTP/1.1 by `node:http`: one agent per connection, so that each request uses the intended connection.

import http from 'node:http';

import { now } from '../clock.js';
import { negotiated, open } from './sockets.js';

export function connect(job, attempt, tickets) {
  open(job, attempt, tickets, (opened) => attempt.done(new Connection(job, opened, tickets)));
}

class Connection {
  #exchange = null;

  constructor(job, opened, tickets) {
    Object.assign(this, { job, tickets, socket: opened.socket, watch: opened.watch, opened });
    this.connected = opened.connected;
    this.handshakeDone = opened.handshakeDone;
    this.handshake = opened.handshake;
    this.agent = new OneSocket(this.socket);
    job.message ??= message(job);
    this.options = { ...job.message, agent: this.agent };
    this.socket.on('close', () => this.#exchange?.fail(this.#failure(null)));
  }

  get isOpen() {
    return !this.socket.destroyed && !this.watch.ended && this.socket.writable;
  }

  request(exchange) {
    this.#exchange = exchange;
    const request = http.request(this.options);
    const failed = (error) => exchange.fail(this.#failure(error));
    exchange.abandon = () => this.destroy();
    request.on('error', failed);
    request.on('response', (response) => {
      exchange.head(response.statusCode, now());
      response.on('data', (bytes) => exchange.piece(bytes));
      response.on('end', () => (response.complete ? exchange.done(now()) : failed(null)));
      response.on('error', failed);
    });
    exchange.bytesOut = this.job.bodySize;
    if (this.job.body) request.end(this.job.body);
    else request.end();
  }

  #failure(error) {
    return this.watch.failure(`${this.job.method} ${this.job.path}`, error);
  }

  facts() {
    return this.job.tls ? negotiated(this.socket) : {};
  }

  async close() {
    if (this.job.resumption !== 'none') await this.tickets.settle(this.opened.hasTicket);
    this.socket.end();
    this.socket.resume();
  }

  destroy() {
    this.socket.destroy();
  }
}

/** The common part of all requests, made once. */
function message(job) {
  const headers = { host: job.serverName, ...job.furtherHeaders };
  if (job.hasLength) headers['content-length'] = job.bodySize;
  return { method: job.method, path: job.path, headers };
}

/** Keeps one connection, and never opens another. */
class OneSocket extends http.Agent {
  #socket;

  constructor(socket) {
    super({ keepAlive: true, maxSockets: 1, scheduling: 'fifo' });
    this.#socket = socket;
  }

  createConnection(_, done) {
    const socket = this.#socket;
    this.#socket = null;
    if (socket) return socket;
    done(Object.assign(new Error('the connection was lost before the request was sent'), { code: 'ECONNRESET' }));
  }
}
