// Waiting until an exact moment without spinning.
//
// Timers of event loops count milliseconds, ten times what a schedule may be late. So one helper thread sleeps on a futex
// (`Atomics.wait`), which is exact to some 60 µs, and wakes the event loop by a message. It is started when first needed.

import { Worker } from 'node:worker_threads';

import { now } from './clock.js';

const NS_PER_MS = 1e6;

class Alarm {
  #thread = null;
  #waits = []; // sorted, the earliest last
  #set = Infinity; // the moment that the thread waits for

  start() {
    if (this.#thread) return;
    const shared = new SharedArrayBuffer(16);
    this.length = new Float64Array(shared, 8, 1);
    this.order = new Int32Array(shared, 0, 1);
    this.#thread = new Worker(new URL('./alarm_thread.js', import.meta.url), { workerData: shared });
    this.#thread.on('message', () => this.#ring());
    this.#thread.unref();
  }

  /** Calls back at that moment, or soon if it has passed; never before. */
  at(moment, callback) {
    this.start();
    let place = this.#waits.length;
    while (place > 0 && this.#waits[place - 1].moment <= moment) place--;
    this.#waits.splice(place, 0, { moment, callback });
    this.#arm();
  }

  until(moment) {
    return new Promise((resolve) => this.at(moment, resolve));
  }

  #arm() {
    const next = this.#waits.at(-1)?.moment ?? Infinity;
    if (next >= this.#set) return;
    this.#set = next;
    this.length[0] = Math.max(0, next - now()) / NS_PER_MS;
    Atomics.add(this.order, 0, 1);
    Atomics.notify(this.order, 0);
  }

  #ring() {
    this.#set = Infinity;
    while (this.#waits.length > 0 && this.#waits.at(-1).moment <= now()) this.#waits.pop().callback();
    this.#arm();
  }
}

export const alarm = new Alarm();
