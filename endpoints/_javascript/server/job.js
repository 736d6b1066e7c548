// A server's spec: every field is either understood or refused.

import fs from 'node:fs';
import net from 'node:net';

import { Failure, Unsupported } from '../contract.js';
import { Protocol } from '../protocols.js';
import { Site } from './site.js';

export class Job {
  /** `library` names the values that it honours; see `README.md`. */
  constructor(spec, library) {
    this.protocol = new Protocol(spec.choose('protocol', library.protocols));
    this.address = spec.text('address');
    if (!net.isIP(this.address)) throw new Failure('other', `spec: \`address\` = ${this.address} is no IP address`);
    this.port = spec.count('port', { least: 0, most: 65535 });
    this.serverName = spec.text('server_name');
    this.abilities = library.abilities(this.protocol);
    this.#readTls(spec);
    const features = spec.take('features');
    for (const feature of features) {
      if (library.features.includes(feature)) continue;
      throw new Unsupported(`features: \`${feature}\`; supported: ${library.features.join(', ')}`);
    }
    const root = spec.text('document_root', null);
    if (root === null && features.includes('files')) {
      throw new Failure('other', 'spec: the feature `files` is asked for without a `document_root`');
    }
    this.qlogDir = this.abilities.qlog ? spec.text('qlog_dir', null) : null;
    this.threads = spec.choose('threads', [1], 1); // a library in JavaScript runs in one thread
    const transport = spec.inner('transport', {});
    this.transport = this.abilities.readTransport(transport, this);
    transport.end();
    spec.end(); // a remaining field would be ignored, so it is unsupported
    this.site = new Site(features, root);
  }

  #readTls(spec) {
    if (this.protocol.isSecure !== spec.has('tls')) {
      const name = this.protocol.name;
      throw new Failure('other', `spec: \`tls\` must be present exactly where the protocol has TLS, and it is ${name}`);
    }
    this.tls = null;
    if (!this.protocol.isSecure) return;
    const tls = spec.inner('tls');
    this.tls = { cert: fs.readFileSync(tls.text('certificate')), key: fs.readFileSync(tls.text('key')) };
    this.tls.keyLog = this.abilities.keyLog ? tls.text('key_log', null) : null;
    this.tls.earlyData = tls.choose('early_data', this.abilities.earlyData);
    this.tls.resumption = tls.choose('resumption', this.abilities.tickets) || this.tls.earlyData;
    tls.end();
  }
}
