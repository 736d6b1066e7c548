// A client's spec: every field is either understood or refused.

import fs from 'node:fs';
import net from 'node:net';

import { Failure, Unsupported } from '../contract.js';
import { Fields } from '../fields.js';
import { pattern } from '../pattern.js';
import { Protocol } from '../protocols.js';

/** Bodies are held in memory. */
const LARGEST_BODY = 2 ** 30;

export class Job {
  /** `library` names the values that it honours; see `README.md`. */
  constructor(spec, library) {
    this.protocol = new Protocol(spec.choose('protocol', library.protocols));
    this.address = spec.text('address');
    if (!net.isIP(this.address)) throw new Failure('other', `spec: \`address\` = ${this.address} is no IP address`);
    this.port = spec.count('port', { most: 65535 });
    this.serverName = spec.text('server_name');
    this.abilities = library.abilities(this.protocol);
    this.#readTls(spec);
    this.#readRequest(spec.inner('request'));
    this.#readConnections(spec.inner('connections'));
    this.#readSchedule(spec.inner('schedule'));
    this.extent = readExtent(spec.inner('extent'));
    this.warmUp = spec.has('warm_up') ? readExtent(spec.inner('warm_up')) : null;
    this.resumption = spec.choose('resumption', this.protocol.isSecure ? this.abilities.resumption : ['none'], 'none');
    const timeouts = spec.inner('timeouts');
    this.connectNs = timeouts.count('connect_ns');
    this.requestNs = timeouts.count('request_ns');
    timeouts.end();
    this.seed = spec.text('seed');
    this.recording = spec.choose('recording', ['samples', 'histograms']);
    this.results = spec.text('results');
    this.qlogDir = this.abilities.qlog ? spec.text('qlog_dir', null) : null;
    this.threads = spec.choose('threads', [1], 1); // a library in JavaScript runs in one thread
    const transport = spec.inner('transport', {});
    this.transport = this.abilities.readTransport(transport, this);
    transport.end();
    spec.end(); // a remaining field would be ignored, so it is unsupported
  }

  #readTls(spec) {
    if (this.protocol.isSecure !== spec.has('tls')) {
      const name = this.protocol.name;
      throw new Failure('other', `spec: \`tls\` must be present exactly where the protocol has TLS, and it is ${name}`);
    }
    this.tls = null;
    if (!this.protocol.isSecure) return;
    const tls = spec.inner('tls');
    const anchor = tls.text('trust_anchor', null);
    this.tls = { ca: anchor === null ? undefined : fs.readFileSync(anchor), verify: tls.choose('verify', [true, false]) };
    this.tls.keyLog = this.abilities.keyLog ? tls.text('key_log', null) : null;
    tls.end();
  }

  #readRequest(request) {
    this.method = request.text('method');
    this.path = request.text('path');
    this.bodySize = request.count('body_size', { least: 0, most: LARGEST_BODY });
    this.headers = request.take('headers', []);
    this.body = this.bodySize > 0 ? pattern(this.bodySize) : null;
    this.hasLength = this.bodySize > 0 || this.method === 'POST' || this.method === 'PUT';
    this.expect = null;
    if (request.has('expect')) {
      const expect = request.inner('expect');
      this.expect = { status: expect.count('status'), size: expect.count('body_size', { least: 0 }) };
      this.expect.sha256 = expect.text('sha256').toLowerCase();
      expect.end();
    }
    request.end();
  }

  #readConnections(policy) {
    this.connections = 0; // a new one for every request
    this.streams = 1;
    if (policy.choose('policy', ['per_request', 'persistent']) === 'persistent') {
      this.connections = policy.count('connections');
      this.streams = policy.count('streams', { most: this.protocol.multiplexes ? 2 ** 30 : 1 });
    }
    policy.end();
  }

  #readSchedule(schedule) {
    this.workers = this.rate = 0;
    if (schedule.choose('loop', ['closed', 'open']) === 'open') {
      this.rate = schedule.take('rate_per_s');
      if (!(Number.isFinite(this.rate) && this.rate > 0)) {
        throw new Unsupported(`${schedule.where}: \`rate_per_s\` = ${this.rate}; supported: numbers above 0`);
      }
      this.arrivals = schedule.choose('arrivals', ['uniform', 'poisson']);
    } else {
      this.workers = schedule.count('workers');
      this.pause = readPause(schedule.inner('pause', { kind: 'none' }));
    }
    schedule.end();
  }

  /** The header fields of the request except host and content-length, with repeated ones as lists. */
  get furtherHeaders() {
    const all = {};
    for (const [name, value] of this.headers) {
      const key = name.toLowerCase();
      all[key] = key in all ? [all[key], value].flat() : value;
    }
    return all;
  }
}

/** The shortest and the longest pause; null: none. */
function readPause(pause) {
  const kind = pause.choose('kind', ['none', 'fixed', 'uniform']);
  let limits = null;
  if (kind === 'fixed') limits = Array(2).fill(pause.count('ns', { least: 0 }));
  if (kind === 'uniform') limits = ['min_ns', 'max_ns'].map((name) => pause.count(name, { least: 0 }));
  if (limits && limits[0] > limits[1]) throw new Unsupported(`${pause.where}: \`min_ns\` is above \`max_ns\``);
  pause.end();
  return limits;
}

function readExtent(fields) {
  const extent = fields.has('requests')
    ? { requests: fields.count('requests') }
    : { durationNs: fields.count('duration_ns') };
  fields.end();
  return extent;
}
