// The site of a server: chooses the response to a request, for every protocol alike.

import { pattern } from '../pattern.js';
import { readDocuments } from './documents.js';

const LONGEST_DELAY_US = 3_600_000_000; // an hour
const LARGEST_BODY = 2 ** 40;

const status = (code) => ({ kind: 'status', code });

export class Site {
  #offers;
  #documents;

  constructor(features, root) {
    this.#offers = new Set(features);
    this.#documents = root === null ? new Map() : readDocuments(root);
  }

  get delays() {
    return this.#offers.has('delay');
  }

  /** Requests that this site answers at once, for warming up. */
  examples() {
    const examples = [{ method: 'GET', path: '/' }];
    if (this.#offers.has('bytes')) examples.push({ method: 'GET', path: '/bytes/1000' });
    if (this.#offers.has('echo')) examples.push({ method: 'POST', path: '/echo', body: pattern(1000) });
    const small = [...this.#documents].find(([, body]) => body.length < 16_384);
    if (small) examples.push({ method: 'GET', path: small[0] });
    return examples;
  }

  /** `target` is the path with its query. */
  reply(method, target) {
    const query = target.indexOf('?');
    const path = query < 0 ? target : target.slice(0, query);
    if (path === '/echo' && this.#offers.has('echo')) return method === 'POST' ? { kind: 'echo' } : status(405);
    if (method !== 'GET') return status(405);
    if (path.startsWith('/bytes/') && this.#offers.has('bytes')) {
      const size = number(path.slice(7), LARGEST_BODY);
      return size === null ? status(400) : { kind: 'pattern', size };
    }
    if (path.startsWith('/delay/') && this.#offers.has('delay')) {
      const us = number(path.slice(7), LONGEST_DELAY_US);
      return us === null ? status(400) : { kind: 'delay', ns: us * 1000 };
    }
    const body = this.#documents.get(path);
    return body ? { kind: 'document', body } : status(404);
  }
}

function number(text, most) {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Infinity;
  return value <= most ? value : null;
}
