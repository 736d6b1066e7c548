// A server within the client's process, for warming the compiler. It listens at a socket of the Unix domain, in the abstract
// namespace of Linux, so it uses no network. Without that namespace nothing is warmed.

import http from 'node:http';
import http2 from 'node:http2';
import { once } from 'node:events';

import { pattern } from '../pattern.js';
import { Protocol } from '../protocols.js';

const LARGEST = 16_384; // bytes of a rehearsed body

export async function rehearsal(job) {
  if (process.platform !== 'linux') return null;
  const size = Math.min(job.expect?.size ?? 0, LARGEST);
  const answer = pattern(size);
  const sent = Math.min(job.bodySize, LARGEST);
  const server = (job.protocol.isHttp2 ? http2 : http).createServer((request, response) => {
    request.resume();
    request.on('end', () => {
      response.writeHead(200, { 'content-length': size });
      response.end(answer);
    });
  });
  const path = `\0wirelab-rehearsal-${process.pid}`;
  server.listen(path);
  await once(server, 'listening');
  const changes = {
    protocol: new Protocol(job.protocol.isHttp2 ? 'h2c' : 'h1c'),
    tls: null,
    target: { path },
    expect: { status: 200, size },
    bodySize: sent,
    body: sent > 0 ? pattern(sent) : null,
    message: undefined,
  };
  const end = () => {
    server.close(); // not waited for: nothing more comes
    server.closeAllConnections?.();
  };
  return { changes, end };
}
