// HTTP/1.1, HTTP/2 and HTTP/3 by Bun. Entry point; see README.md.

import { main } from '../_javascript/endpoint.js';

const features = ['files', 'echo', 'bytes', 'delay'];

main(import.meta.dirname, {
  name: 'Bun (HTTP/3: lsquic)',
  version: Bun.version,
  server: { protocols: ['h1c', 'h1', 'h2c', 'h2', 'h3'], features, load: () => import('./server.js') },
  client: { protocols: ['h1c', 'h1', 'h2c', 'h2'], features, load: () => import('./client.js') },
});
