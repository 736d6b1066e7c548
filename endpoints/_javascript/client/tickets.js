// Session tickets, each good for one resumed connection (RFC 8446, appendix C.4).

/** Waiting for a ticket must not delay the next step for long. */
const TICKET_WAIT_MS = 200;

export class Tickets {
  #store = [];
  #waiting = new Set();
  /** Whether a connection has ever brought one: without one, the client stops waiting for this server's tickets. */
  #given = null;

  get count() {
    return this.#store.length;
  }

  put(ticket) {
    this.#store.push(ticket);
    this.#given = true;
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  take() {
    return this.#store.shift();
  }

  /** Waits, briefly, for the ticket of a connection that is about to be closed. */
  async settle(hasOne) {
    if (hasOne || this.#given === false) return;
    let timer;
    await new Promise((resolve) => {
      this.#waiting.add(resolve);
      timer = setTimeout(resolve, TICKET_WAIT_MS);
    });
    clearTimeout(timer);
    this.#given ??= false;
  }
}
