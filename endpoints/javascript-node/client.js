// The client: Node's own interfaces, rehearsed with Node's own server.

export * from '../_javascript/node/client.js';
export { rehearsal } from '../_javascript/node/rehearsal.js';
