// The client: Bun's own `node:http` and `node:http2`, because `fetch` shows neither connections nor their times.

import * as node from '../_javascript/node/client.js';

export * from '../_javascript/node/client.js';
export { rehearsal } from '../_javascript/node/rehearsal.js';

export function abilities(protocol) {
  const all = node.abilities(protocol);
  const readTransport = (fields) => {
    fields.choose('no_delay', [true], true); // Bun sets the option on every socket
    return all.readTransport(fields);
  };
  return { ...all, readTransport };
}
