// The client's side of the conversation.

import { Commands, emit } from '../contract.js';
import { Engine } from './engine.js';
import { Job } from './job.js';
import { Samples } from './recorder.js';
import { Tickets } from './tickets.js';
import { warmUp } from './warm.js';

export async function run(spec, library) {
  const job = new Job(spec, library);
  const recorder = await makeRecorder(job);
  const commands = new Commands(giveUp);
  await library.prepare?.(job);
  await warmUp(job, library);
  const engine = new Engine(job, library, new Tickets());
  emit('ready', { configured: library.configured(job) });

  await commands.expect('go');
  const facts = await engine.check();
  await engine.prime();
  await engine.open();
  emit('warm');

  const zero = await commands.expect('go');
  const end = await engine.measure(zero, recorder);
  emit('end', { window_ns: end - zero });

  await commands.expect('finish');
  await engine.pool.close();
  if (engine.firstFailure) console.error(`the first failure: ${engine.firstFailure.message}`);
  recorder.write(job.results, zero);
  emit('done', { ...recorder.counts(), configured: facts });
}

async function makeRecorder(job) {
  if (job.recording === 'samples') return new Samples(job);
  const { Histograms } = await import('./histograms.js'); // loaded only if needed
  return new Histograms();
}

function giveUp() {
  emit('error', { kind: 'other', message: 'told to stop before the end' });
  process.exit(1);
}
