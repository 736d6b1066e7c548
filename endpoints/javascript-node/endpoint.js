// HTTP/1.1 and HTTP/2 by Node.js itself. Entry point; see README.md.

import { main } from '../_javascript/endpoint.js';

const protocols = ['h1c', 'h1', 'h2c', 'h2'];
const features = ['files', 'echo', 'bytes', 'delay'];

main(import.meta.dirname, {
  name: 'node:http, node:http2',
  version: process.versions.node,
  server: { protocols, features, load: () => import('../_javascript/node/http_server.js') },
  client: { protocols, features, load: () => import('./client.js') },
});
