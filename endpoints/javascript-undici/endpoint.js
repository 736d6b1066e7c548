// HTTP/1.1 and HTTP/2 by undici, a client. Entry point; see README.md.

import { createRequire } from 'node:module';

import { main } from '../_javascript/endpoint.js';

main(import.meta.dirname, {
  name: 'undici',
  version: createRequire(import.meta.url)('undici/package.json').version,
  client: {
    protocols: ['h1c', 'h1', 'h2'],
    features: ['files', 'echo', 'bytes', 'delay'],
    load: () => import('./client.js'),
  },
});
