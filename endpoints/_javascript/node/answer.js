// Answers requests by the interface that `node:http` and `node:http2` share.

import { alarm } from '../alarm.js';
import { now } from '../clock.js';
import { pieces } from '../pattern.js';

/** A listener for requests. */
export function answer(site) {
  return (request, response) => {
    const arrival = now();
    const reply = site.reply(request.method, request.url);
    response.on('error', () => {}); // the client reports it
    if (reply.kind === 'document') return whole(response, reply.body);
    if (reply.kind === 'pattern') return generated(response, reply.size);
    if (reply.kind === 'echo') return echo(request, response);
    if (reply.kind === 'delay') return alarm.at(arrival + reply.ns, () => whole(response, null));
    response.writeHead(reply.code, { 'content-length': 0 });
    response.end();
  };
}

function whole(response, body) {
  response.writeHead(200, { 'content-length': body?.length ?? 0 });
  if (body?.length > 0) response.end(body);
  else response.end();
}

function generated(response, size) {
  response.writeHead(200, { 'content-length': size });
  const rest = pieces(size);
  const write = () => {
    // Not `for of`, which would end the generator at a break.
    for (let next = rest.next(); !next.done; next = rest.next()) {
      if (!response.write(next.value)) return; // until it has drained
    }
    response.off('drain', write);
    response.end();
  };
  response.on('drain', write);
  write();
}

function echo(request, response) {
  const length = request.headers['content-length'];
  response.writeHead(200, length === undefined ? {} : { 'content-length': length });
  request.on('error', () => {});
  request.pipe(response);
}
