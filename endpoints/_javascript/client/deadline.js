// Deadlines that cost nothing while requests are in time: the timer stays as it is if the moment moves back, as with
// every new request, and checks again when it fires.

import { now } from '../clock.js';

const NS_PER_MS = 1e6;

export class Deadline {
  #at = Infinity;
  #timer = null;
  #fires = Infinity;
  #expire = null;

  /** Calls `expire` at that moment, unless the deadline is set again or lifted before. */
  set(at, expire) {
    this.#at = at;
    this.#expire = expire;
    if (at < this.#fires) this.#start();
  }

  lift() {
    this.#at = Infinity;
  }

  /** No timer runs any more. */
  end() {
    this.lift();
    clearTimeout(this.#timer);
    this.#fires = Infinity;
  }

  #start() {
    clearTimeout(this.#timer);
    this.#fires = this.#at;
    // One more, because timers count whole milliseconds and may fire early by less than one.
    const length = Math.min(Math.ceil((this.#at - now()) / NS_PER_MS) + 1, 2 ** 31 - 1);
    this.#timer = setTimeout(() => this.#look(), Math.max(length, 1));
  }

  #look() {
    this.#fires = Infinity;
    if (this.#at === Infinity) return;
    if (this.#at > now()) return this.#start();
    this.#at = Infinity;
    this.#expire();
  }
}
