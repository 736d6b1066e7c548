// Failures, as the contract's error kinds.

import { Failure } from '../_javascript/contract.js';

const CRYPTO_ERROR = 0x100; // and the TLS alert: RFC 9000, section 20.1
const ABOUT_CERTIFICATES = [42, 43, 44, 45, 46, 48]; // RFC 8446, section 6
const NO_APPLICATION_PROTOCOL = 120; // RFC 7301, section 3.2

/** The failure behind the end of a session. */
export function closed(attempt, { errorCode, reason }) {
  const words = `${attempt}: the session was closed with code ${errorCode}${reason ? ` (${reason})` : ''}`;
  return new Failure(kindOf(errorCode), words);
}

function kindOf(code) {
  const alert = code - CRYPTO_ERROR;
  if (alert < 0 || alert > 255) return 'other';
  if (ABOUT_CERTIFICATES.includes(alert)) return 'certificate';
  return alert === NO_APPLICATION_PROTOCOL ? 'protocol' : 'tls';
}

/** The failure behind an error of the library; null: the stream just ended. */
export function failure(attempt, error) {
  if (error === null) return new Failure('truncated', `${attempt}: the stream ended before the response was complete`);
  const words = `${attempt}: ${error.code ?? error.name}: ${error.message}`;
  if (/RESET/.test(error.code)) return new Failure('reset', words);
  return new Failure(/STREAM|FRAME|H3_/.test(error.code) ? 'protocol' : 'other', words);
}
