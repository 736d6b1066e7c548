// The server: `Bun.serve`, which speaks every version of HTTP.

import fs from 'node:fs';

import { now } from '../_javascript/clock.js';
import { Failure } from '../_javascript/contract.js';
import { activeSettings, readTransport } from '../_javascript/node/settings.js';
import { answer } from './answer.js';

const TLS_1_3 = 0x0304; // RFC 8446, section 4.2.1
const SSL_OP_NO_TICKET = 0x4000;
const LARGEST_REQUEST = 2 ** 40; // bytes; by default 128 MB
const REHEARSED = 400; // requests
const LONGEST_NS = 400_000_000; // on a machine that is busy with other things

export function abilities(protocol) {
  return {
    tickets: [true, false],
    earlyData: [false], // Bun has no setting for it
    keyLog: false,
    qlog: false,
    readTransport: (fields) => readSettings(fields, protocol),
  };
}

/** Bun has no setting for any of it: the spec's value must be Bun's default. */
function readSettings(fields, protocol) {
  if (protocol.isQuic) return null;
  fields.choose('no_delay', [true], true);
  return readTransport(fields, { isHttp2: false }); // no windows
}

export async function serve(job) {
  await rehearse(job);
  const tls = job.tls ? { tls: tlsOptions(job) } : {};
  const server = start(job, { hostname: job.address, port: job.port, ipv6Only: true, ...tls });
  process.on('exit', () => server.stop(true)); // clients hear that it ends
  return { port: server.port, configured: job.protocol.isQuic ? { threads: 1 } : activeSettings(job.transport) };
}

function start(job, where) {
  const { isQuic, isHttp2 } = job.protocol;
  try {
    return Bun.serve({
      http1: !isQuic && !isHttp2,
      // Without HTTP/2, Bun takes no part in ALPN; with it, clients that offer `http/1.1` alone get that.
      http2: isHttp2 || (job.tls !== null && !isQuic),
      http3: isQuic,
      idleTimeout: 0, // connections are kept however long they idle
      maxRequestBodySize: LARGEST_REQUEST,
      development: false,
      fetch: answer(job.site),
      ...where,
    });
  } catch (error) {
    throw new Failure('other', `binding ${job.address} port ${job.port}: ${error.code ?? error.name}: ${error.message}`);
  }
}

function tlsOptions({ tls }) {
  return {
    cert: tls.cert,
    key: tls.key,
    minVersion: TLS_1_3,
    maxVersion: TLS_1_3,
    secureOptions: tls.resumption ? 0 : SSL_OP_NO_TICKET,
  };
}

/** Warms the compiler by requests from within, over a socket of the Unix domain in the abstract namespace of Linux. */
async function rehearse(job) {
  if (process.platform !== 'linux') return;
  const unix = `\0wirelab-rehearsal-${process.pid}`;
  const server = start(job, { unix, http1: true, http2: false, http3: false });
  const examples = job.site.examples();
  const end = now() + LONGEST_NS;
  for (let i = 0; i < REHEARSED && now() < end; i++) {
    const { path, ...request } = examples[i % examples.length];
    await (await fetch(`http://rehearsal${path}`, { unix, ...request })).bytes();
  }
  await server.stop(true);
}
