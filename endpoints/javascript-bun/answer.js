// Answers requests by the interface of `fetch`.

import { alarm } from '../_javascript/alarm.js';
import { now } from '../_javascript/clock.js';
import { pattern, pieces } from '../_javascript/pattern.js';

/** Generated bodies up to this size are cut from one that is kept, in bytes. */
const LARGEST_KEPT = 2 ** 26;

/** Larger request bodies are passed on as they come, in bytes. */
const LARGEST_COLLECTED = 2 ** 20;

const NOTHING = new Uint8Array(0);

/** A handler of requests. */
export function answer(site) {
  let kept = pattern(2 ** 20);
  const generated = (size) => {
    if (size > LARGEST_KEPT) return new Response(stream(size), { headers: { 'content-length': size } });
    if (size > kept.length) kept = pattern(size);
    return new Response(kept.subarray(0, size));
  };
  return (request) => {
    const arrival = now();
    const { url } = request;
    const reply = site.reply(request.method, url.slice(url.indexOf('/', 8)));
    if (reply.kind === 'document') return new Response(reply.body);
    if (reply.kind === 'pattern') return generated(reply.size);
    if (reply.kind === 'echo') return echo(request);
    if (reply.kind === 'delay') return delayed(arrival + reply.ns);
    return new Response(NOTHING, { status: reply.code });
  };
}

async function echo(request) {
  const length = Number(request.headers.get('content-length') ?? Infinity);
  return new Response(length > LARGEST_COLLECTED ? request.body : await request.bytes());
}

async function delayed(moment) {
  await alarm.until(moment);
  return new Response(NOTHING);
}

function stream(size) {
  const rest = pieces(size);
  return new ReadableStream({
    type: 'bytes',
    pull(controller) {
      const { done, value } = rest.next();
      if (done) controller.close();
      else controller.enqueue(new Uint8Array(value)); // a copy, because the stream takes possession of it
    },
  });
}
