// The thread of `alarm.js`: sleeps for the ordered time, unless a new order comes first, then sends a message.

import { parentPort, workerData } from 'node:worker_threads';

const order = new Int32Array(workerData, 0, 1);
const length = new Float64Array(workerData, 8, 1);

for (let done = 0; ; ) {
  Atomics.wait(order, 0, done);
  let current;
  do {
    current = Atomics.load(order, 0);
  } while (Atomics.wait(order, 0, current, length[0]) !== 'timed-out');
  done = current;
  parentPort.postMessage(0);
}
