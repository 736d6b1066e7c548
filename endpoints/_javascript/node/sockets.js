// Opening a connection: TCP, and TLS 1.3 where the protocol has it, with the times of both.

import fs from 'node:fs';
import net from 'node:net';
import tls from 'node:tls';

import { now } from '../clock.js';
import { Failure } from '../contract.js';
import { Watch } from './faults.js';

/** The files in which systems keep their authorities; Node would use its own list. */
const SYSTEM_AUTHORITIES = ['/etc/ssl/certs/ca-certificates.crt', '/etc/pki/tls/certs/ca-bundle.crt', '/etc/ssl/cert.pem'];

/** Opens a socket for `attempt`, and calls `ready` with an `Opened` when it can carry requests. */
export function open(job, attempt, tickets, ready) {
  const target = job.target ?? { host: job.address, port: job.port };
  const options = { ...target, autoSelectFamily: false };
  const socket = job.tls ? tls.connect({ ...options, ...tlsOptions(job, tickets) }) : net.connect(options);
  const opened = new Opened(socket);
  const fail = (error) => attempt.fail(opened.watch.failure(`connecting to ${job.address} port ${job.port}`, error));
  attempt.abandon = () => socket.destroy();
  socket.once('connect', () => {
    opened.connected = now();
    if (job.transport.noDelay) socket.setNoDelay(true); // with TLS, the option of `connect` has no effect
    if (!job.tls) ready(opened);
  });
  socket.once('secureConnect', () => {
    opened.handshakeDone = now();
    opened.handshake = socket.isSessionReused() ? 'resumed' : 'full';
    if (socket.alpnProtocol === job.protocol.alpn) return ready(opened);
    const said = socket.alpnProtocol || 'nothing';
    attempt.fail(new Failure('protocol', `${said} was negotiated (ALPN) instead of ${job.protocol.alpn}`));
    socket.destroy();
  });
  socket.once('error', fail);
  socket.once('close', () => fail(null));
  if (job.resumption !== 'none') {
    socket.on('session', (ticket) => {
      opened.hasTicket = true;
      tickets.put(ticket);
    });
  }
  if (job.tls?.keyLog) socket.on('keylog', (line) => fs.appendFileSync(job.tls.keyLog, line));
}

/** A socket that is connected, and when it was. */
class Opened {
  connected = null;
  handshakeDone = null;
  handshake = null;
  hasTicket = false;

  constructor(socket) {
    this.socket = socket;
    this.watch = new Watch(socket);
  }
}

function tlsOptions(job, tickets) {
  job.tls.context ??= tls.createSecureContext({
    ca: job.tls.ca ?? systemAuthorities(),
    minVersion: 'TLSv1.3',
    maxVersion: 'TLSv1.3',
  });
  return {
    secureContext: job.tls.context,
    servername: net.isIP(job.serverName) ? undefined : job.serverName, // RFC 6066, section 3
    checkServerIdentity: (_, certificate) => tls.checkServerIdentity(job.serverName, certificate),
    rejectUnauthorized: job.tls.verify,
    ALPNProtocols: [job.protocol.alpn],
    session: job.resumption === 'none' ? undefined : tickets.take(),
  };
}

function systemAuthorities() {
  const path = [process.env.SSL_CERT_FILE, ...SYSTEM_AUTHORITIES].find((path) => path && fs.existsSync(path));
  return path && fs.readFileSync(path);
}

/** The negotiated values. */
export function negotiated(socket) {
  const facts = { alpn: socket.alpnProtocol, cipher: socket.getCipher().standardName };
  const { name, type } = socket.getEphemeralKeyInfo() ?? {};
  if (name ?? type) facts.group = name ?? type;
  const bytes = chainBytes(socket.getPeerCertificate(true));
  if (bytes > 0) facts.certificate_chain_bytes = bytes; // a resumed connection brings none
  return facts;
}

/** Bytes of the chain as the peer sent it. Node appends the trust anchor, which peers do not send. */
function chainBytes(leaf) {
  let bytes = leaf?.raw?.length ?? 0;
  for (let one = leaf?.issuerCertificate; one?.raw && one.issuerCertificate !== one; one = one.issuerCertificate) {
    bytes += one.raw.length;
  }
  return bytes;
}
