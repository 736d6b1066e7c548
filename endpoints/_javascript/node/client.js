// The client's part of a library that offers Node's own interfaces: `node:http` and `node:http2` over `node:net` and `node:tls`.

import { activeSettings, readTransport } from './settings.js';

export function abilities(protocol) {
  return {
    resumption: ['none', 'resume'], // Node has no interface for early data
    keyLog: true,
    qlog: false,
    readTransport: (fields) => readTransport(fields, protocol),
  };
}

export async function prepare(job) {
  const module = await import(job.protocol.isHttp2 ? './http2_client.js' : './http1_client.js');
  job.connect = module.connect;
}

export function connect(job, attempt, tickets) {
  job.connect(job, attempt, tickets);
}

export function configured(job) {
  return activeSettings(job.transport);
}

export function facts(job, connection) {
  return { ...configured(job), ...connection.facts() };
}
