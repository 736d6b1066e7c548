// Failures, as the contract's error kinds.

import { Failure } from '../contract.js';

const KINDS = {
  ECONNREFUSED: 'refused',
  EHOSTUNREACH: 'unreachable',
  ENETUNREACH: 'unreachable',
  ETIMEDOUT: 'unreachable',
  EPIPE: 'reset',
  ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL: 'protocol',
  ERR_SSL_TLSV13_ALERT_NO_APPLICATION_PROTOCOL: 'protocol',
};

/** Watches a socket, because libraries report its reset and its orderly end alike. */
export class Watch {
  error = null;
  ended = false;
  #reset = false;

  constructor(socket) {
    this.socket = socket;
    socket.on('error', (error) => (this.error ??= error));
    // Before Node's own listener, which shuts the socket down.
    socket.prependListener('end', () => {
      this.ended = true;
      // A reset that comes together with data is reported as an end. But then the socket has no peer any more.
      this.#reset = socket.remoteAddress === undefined;
    });
  }

  /** The failure behind an error that a library reported, or behind a missing answer. */
  failure(attempt, reported) {
    const error = this.error ?? reported;
    const words = `${attempt}: ${error ? `${error.code ?? error.name}: ${error.message}` : 'the connection ended'}`;
    return new Failure(this.#kind(error), words);
  }

  #kind(error) {
    const code = String(error?.code ?? '');
    if (this.socket.authorizationError) return 'certificate';
    if (KINDS[code]) return KINDS[code];
    if (code.startsWith('HPE_')) return code === 'HPE_INVALID_EOF_STATE' ? 'truncated' : 'protocol';
    if (code.startsWith('ERR_SSL') || code.startsWith('ERR_TLS') || code === 'EPROTO') return 'tls';
    if (this.#reset || (this.error?.code === 'ECONNRESET' && this.error.syscall)) return 'reset';
    if (this.ended || code === 'ECONNRESET') return 'truncated';
    if (code.startsWith('ERR_HTTP2')) return http2Kind(error);
    if (code.startsWith('ERR_')) return 'protocol';
    return error ? 'other' : 'truncated';
  }
}

function http2Kind(error) {
  const names = /NGHTTP2_(\w+)/.exec(error.message)?.[1];
  return ['CANCEL', 'REFUSED_STREAM', 'INTERNAL_ERROR', 'NO_ERROR'].includes(names) ? 'reset' : 'protocol';
}
