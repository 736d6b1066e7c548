// The server's side of the conversation.

import { alarm } from '../alarm.js';
import { Commands, emit } from '../contract.js';
import { Job } from './job.js';

export async function run(spec, library) {
  const job = new Job(spec, library);
  if (job.site.delays) alarm.start();
  let stop;
  const stopped = new Promise((resolve) => (stop = resolve));
  new Commands(stop);
  const { port, configured } = await library.serve(job);
  emit('ready', { port, configured });
  await stopped;
  emit('done', { configured: {} });
}
