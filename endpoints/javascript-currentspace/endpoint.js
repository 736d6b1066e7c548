// HTTP/3 by @currentspace/http3, which is quiche in a native module. Entry point; see README.md.

import { createRequire } from 'node:module';
import path from 'node:path';

import { main } from '../_javascript/endpoint.js';

const require = createRequire(import.meta.url);
// The package does not export its package.json.
const folder = path.dirname(path.dirname(require.resolve('@currentspace/http3')));

main(import.meta.dirname, {
  name: '@currentspace/http3 (quiche)',
  version: require(path.join(folder, 'package.json')).version,
  client: { protocols: ['h3'], features: ['files', 'echo', 'bytes', 'delay'], load: () => import('./client.js') },
});
