// The conversation with wirelab: events out, commands in, and the end of a role.

import fs from 'node:fs';

import { now } from './clock.js';

export const VERSION = 1;
const UNSUPPORTED_STATUS = 127;

/** The spec asks for something that this endpoint cannot do. */
export class Unsupported extends Error {}

/** A failure; `kind` is one of the error kinds of the contract. */
export class Failure extends Error {
  constructor(kind, message) {
    super(message);
    this.kind = kind;
  }
}

/** Prints one event, a JSON line, in one write. */
export function emit(event, fields = {}) {
  fs.writeSync(1, `${JSON.stringify({ event, ...fields })}\n`);
}

/** Runs a role, and maps its end to the last event and the exit status. */
export async function conduct(role) {
  // A bug or a machine's limit must end the trial with an event, anywhere in the program.
  process.on('uncaughtException', end);
  process.on('unhandledRejection', end);
  try {
    await role();
  } catch (error) {
    end(error);
  }
  process.exit(0);
}

function end(error) {
  if (error instanceof Unsupported) {
    emit('unsupported', { message: error.message });
    process.exit(UNSUPPORTED_STATUS);
  }
  const kind = error instanceof Failure ? error.kind : 'other';
  if (!(error instanceof Failure)) console.error(error);
  emit('error', { kind, message: error instanceof Failure ? error.message : String(error) });
  process.exit(1);
}

/** The words on standard input; `stop` and the end of input call `onStop` at any time. */
export class Commands {
  #words = [];
  #waiting = null;
  #text = '';
  #finished = false;

  constructor(onStop) {
    process.stdin.setEncoding('utf8');
    process.stdin.on('data', (text) => this.#read(text, now(), onStop));
    process.stdin.on('end', () => this.#finished || onStop());
  }

  #read(text, at, onStop) {
    const lines = (this.#text + text).split('\n');
    this.#text = lines.pop();
    for (const line of lines) {
      const word = line.trim();
      if (word === 'stop') return onStop();
      this.#finished ||= word === 'finish'; // the last word; the end of input has no meaning any more
      this.#words.push({ word, at });
    }
    if (this.#words.length > 0) this.#waiting?.();
  }

  /** Waits for a word and returns the moment of its receipt. */
  async expect(word) {
    if (this.#words.length === 0) {
      await new Promise((resolve) => (this.#waiting = resolve));
      this.#waiting = null;
    }
    const found = this.#words.shift();
    if (found.word !== word) throw new Failure('other', `told \`${found.word}\` while waiting for \`${word}\``);
    return found.at;
  }
}
