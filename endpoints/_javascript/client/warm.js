// Warming the compiler before `ready`: the client's own code runs against a server in this process, which the library
// sets up without a network. The spec's warm-up warms the rest (TLS, the network).

import { now } from '../clock.js';
import { Engine } from './engine.js';
import { Samples } from './recorder.js';
import { Tickets } from './tickets.js';

const REQUESTS = 400;
const LONGEST_NS = 400_000_000; // on a machine that is busy with other things
const MOST_LANES = 4;

export async function warmUp(job, library) {
  const stage = await library.rehearsal?.(job);
  if (!stage) return;
  const rehearsal = Object.assign(Object.create(job), {
    connections: Math.min(job.connections, MOST_LANES),
    streams: Math.min(job.streams, MOST_LANES),
    workers: Math.min(job.workers || MOST_LANES, MOST_LANES),
    rate: 0,
    pause: null,
    extent: { requests: REQUESTS, durationNs: LONGEST_NS },
    warmUp: null,
    resumption: 'none',
    ...stage.changes,
  });
  const engine = new Engine(rehearsal, library, new Tickets());
  await engine.open();
  await engine.measure(now(), new Samples(rehearsal));
  await engine.pool.close();
  stage.end();
}
