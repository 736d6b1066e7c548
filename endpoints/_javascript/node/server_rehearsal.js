// Warming the compiler of a server before `ready`: requests from within the process, over a socket of the Unix domain in the
// abstract namespace of Linux. Without that namespace nothing is warmed.

import http from 'node:http';
import http2 from 'node:http2';
import net from 'node:net';
import tls from 'node:tls';
import { once } from 'node:events';

import { now } from '../clock.js';

const REQUESTS = 400;
const LONGEST_NS = 400_000_000; // on a machine that is busy with other things

/** Sends requests to `server`, which is then closed. Returns what `look` sees in the server's session, with HTTP/2. */
export async function rehearse(job, server, look) {
  if (process.platform !== 'linux') return null;
  const path = `\0wirelab-rehearsal-${process.pid}`;
  server.listen(path);
  await once(server, 'listening');
  let session = null;
  server.on('session', (one) => (session = one));
  const socket = job.tls
    ? tls.connect({ path, rejectUnauthorized: false, ALPNProtocols: [job.protocol.alpn] }) // the peer is this process
    : net.connect({ path });
  await once(socket, job.tls ? 'secureConnect' : 'connect');
  const peer = job.protocol.isHttp2 ? new Http2Peer(socket) : new Http1Peer(socket);
  const examples = job.site.examples();
  const end = now() + LONGEST_NS;
  for (let i = 0; i < REQUESTS && now() < end; i++) await peer.request(examples[i % examples.length]);
  const seen = session && look(session);
  peer.close();
  server.close(); // not waited for: nothing more comes
  server.closeAllConnections?.();
  return seen;
}

class Http1Peer {
  constructor(socket) {
    this.socket = socket;
    this.agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    this.agent.createConnection = () => socket;
  }

  request({ method, path, body }) {
    return new Promise((resolve, reject) => {
      const request = http.request({ agent: this.agent, method, path }, (response) => {
        response.resume();
        response.on('end', resolve);
      });
      request.on('error', reject);
      request.end(body);
    });
  }

  close() {
    this.socket.end();
  }
}

class Http2Peer {
  constructor(socket) {
    this.session = http2.connect('http://rehearsal', { createConnection: () => socket });
  }

  request({ method, path, body }) {
    return new Promise((resolve, reject) => {
      const stream = this.session.request({ ':method': method, ':path': path }, { endStream: !body });
      stream.resume();
      stream.on('end', resolve);
      stream.on('error', reject);
      if (body) stream.end(body);
    });
  }

  close() {
    this.session.close();
  }
}
