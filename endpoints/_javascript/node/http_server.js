// The server's part of a library that offers Node's own interfaces: `node:http`, `node:https` and `node:http2`.

import fs from 'node:fs';
import http from 'node:http';
import http2 from 'node:http2';
import https from 'node:https';
import { constants } from 'node:crypto';

import { Failure } from '../contract.js';
import { answer } from './answer.js';
import { rehearse } from './server_rehearsal.js';
import { activeSettings, readTransport } from './settings.js';

const MEMORY_MB = 1024; // for a session of HTTP/2; by default 10, which ends sessions with many streams

export function abilities(protocol) {
  return {
    // A resumed connection gets no new ticket (Node never asks OpenSSL to renew one), so with tickets that are used once, two
    // connections of three would resume; that is neither resumption nor none.
    tickets: [false],
    earlyData: [false], // Node has no interface for it
    keyLog: true,
    qlog: false,
    readTransport: (fields) => readTransport(fields, protocol),
  };
}

export async function serve(job) {
  const facts = await rehearse(job, create(job), (session) => activeSettings(job.transport, session));
  const server = create(job);
  if (job.tls?.keyLog) server.on('keylog', (line) => fs.appendFileSync(job.tls.keyLog, line));
  await listen(server, { host: job.address, port: job.port, backlog: 65535, ipv6Only: true });
  return { port: server.address().port, configured: facts ?? activeSettings(job.transport) };
}

/** A server that does not listen yet. It keeps connections without limits of idle time and of requests. */
function create(job) {
  const { noDelay } = job.transport;
  const options = { noDelay, ...(job.tls ? tlsOptions(job) : {}) };
  if (!job.protocol.isHttp2) {
    Object.assign(options, { keepAliveTimeout: 0, requestTimeout: 0, headersTimeout: 0 });
    const server = (job.tls ? https : http).createServer(options, answer(job.site));
    return survive(server);
  }
  const settings = job.transport.streamWindow ? { initialWindowSize: job.transport.streamWindow } : {};
  Object.assign(options, { settings, maxSessionMemory: MEMORY_MB });
  const server = (job.tls ? http2.createSecureServer : http2.createServer)(options, answer(job.site));
  server.on('session', (session) => {
    if (job.transport.connectionWindow) session.setLocalWindowSize(job.transport.connectionWindow);
    session.on('error', () => {}); // the client reports it
  });
  return survive(server);
}

function tlsOptions({ tls, protocol }) {
  return {
    cert: tls.cert,
    key: tls.key,
    minVersion: 'TLSv1.3',
    maxVersion: 'TLSv1.3',
    ALPNProtocols: [protocol.alpn],
    // OpenSSL then sends session identifiers instead, which no store keeps, so no session can be resumed.
    secureOptions: constants.SSL_OP_NO_TICKET,
  };
}

/** The client reports a broken connection. */
function survive(server) {
  server.on('clientError', (_, socket) => socket.destroy());
  server.on('tlsClientError', (_, socket) => socket.destroy());
  return server;
}

function listen(server, where) {
  return new Promise((resolve, reject) => {
    const failed = (error) => {
      reject(new Failure('other', `binding ${where.host} port ${where.port}: ${error.code}: ${error.message}`));
    };
    server.once('error', failed);
    server.listen(where, () => {
      server.off('error', failed);
      resolve();
    });
  });
}
