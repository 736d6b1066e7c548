// The transport settings that programs on Node's sockets can honour. Node has no socket options beyond `TCP_NODELAY`, so
// the others are the kernel's defaults, read from the kernel.

import fs from 'node:fs';

import { Unsupported } from '../contract.js';

const LARGEST_WINDOW = 2 ** 31 - 1; // bytes, RFC 9113, section 6.9.1
const SMALLEST_WINDOW = 65_535; // a connection's initial window; it can only grow, section 6.9.2

/** Takes the settings of TCP and HTTP/2. */
export function readTransport(fields, protocol) {
  // `node:http2` sets the option on every socket that it is given.
  const settings = { noDelay: fields.choose('no_delay', protocol.isHttp2 ? [true] : [true, false], true) };
  fields.choose('fast_open', [false], false); // Node's behaviour is off
  const congestion = kernelCongestion();
  const wanted = fields.text('congestion', congestion);
  if (wanted !== congestion) {
    throw new Unsupported(
      `transport: \`congestion\` = ${wanted}: there is no option for it here, and the kernel's default is ${congestion}; ` +
        `where the kernel has it, \`sysctl -w net.ipv4.tcp_congestion_control=${wanted}\` makes it the default`,
    );
  }
  if (protocol.isHttp2) {
    settings.streamWindow = fields.count('stream_window', { most: LARGEST_WINDOW, fallback: null });
    const limits = { least: SMALLEST_WINDOW, most: LARGEST_WINDOW, fallback: null };
    settings.connectionWindow = fields.count('connection_window', limits);
  }
  return settings;
}

/** Their active values; `session` is an HTTP/2 session of this side. */
export function activeSettings(settings, session = null) {
  const facts = { no_delay: settings.noDelay, fast_open: false, threads: 1 };
  const congestion = kernelCongestion();
  if (congestion !== null) facts.congestion = congestion;
  if (session !== null) {
    facts.stream_window = session.localSettings.initialWindowSize;
    facts.connection_window = session.state.effectiveLocalWindowSize;
  }
  return facts;
}

/** The congestion control of new sockets in this network namespace; null: not Linux. */
function kernelCongestion() {
  try {
    return fs.readFileSync('/proc/sys/net/ipv4/tcp_congestion_control', 'utf8').trim();
  } catch {
    return null;
  }
}
