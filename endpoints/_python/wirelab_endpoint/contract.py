"""The conversation with wirelab: events out, commands in, specs read so that no field can be ignored."""

import json
import os
import queue
import sys
import threading

VERSION = 1


class Unsupported(Exception):
    """The spec asks for something that this endpoint cannot do: exit status 127."""


class Failure(Exception):
    """A failure. `kind` is one of the error kinds of the contract."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


def emit(event, **fields):
    """Prints one event, a JSON line, in one write."""
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def conduct(role):
    """Runs a role, and maps its end to the last event and the exit status."""
    try:
        role()
    except Unsupported as reason:
        emit("unsupported", message=str(reason))
        status = 127
    except Failure as failure:
        emit("error", kind=failure.kind, message=str(failure))
        status = 1
    except Exception as error:  # a bug or a machine's limit: it must be an event, not only a traceback
        emit("error", kind="other", message=f"{type(error).__name__}: {error}")
        status = 1
    else:
        status = 0
    os._exit(status)  # not sys.exit(): a thread that waits for a peer must not delay the exit


class Commands:
    """The words on standard input; `stop` and the end of input call `on_stop` at any time."""

    def __init__(self, on_stop):
        self.words, self.on_stop = queue.Queue(), on_stop
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in sys.stdin:
            if line.strip() == "stop":
                break
            self.words.put(line.strip())
            if line.strip() == "finish":  # the last word; the end of input has no meaning any more
                return
        self.on_stop()

    def expect(self, word):
        found = self.words.get()
        if found != word:
            raise Failure("other", f"told `{found}` while waiting for `{word}`")


def give_up():
    """Ends a client at the word `stop`."""
    emit("error", kind="other", message="told to stop before the end")
    os._exit(1)


class Fields:
    """A JSON object. Every field must be taken: one that is left at the end is unsupported, never ignored."""

    def __init__(self, value, where):
        if not isinstance(value, dict):
            raise Unsupported(f"{where} is not an object")
        self.left, self.where = dict(value), where

    def take(self, name, *default):
        if name not in self.left and not default:
            raise Unsupported(f"{self.where}: the field `{name}` is missing")
        return self.left.pop(name, *default)

    def choose(self, name, known, *default):
        """Takes a field whose value must be one of the known ones."""
        value = self.take(name, *default)
        if value not in known:
            raise Unsupported(f"{self.where}: `{name}` = {value!r}; supported: {', '.join(map(str, known))}")
        return value

    def count(self, name, *default, least=1):
        """Takes a whole number."""
        value = self.take(name, *default)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise Unsupported(f"{self.where}: `{name}` = {value!r}; supported: whole numbers from {least}")
        return value

    def inner(self, name):
        return Fields(self.take(name), f"{self.where}.{name}")

    def end(self):
        if self.left:
            raise Unsupported(f"{self.where}: cannot honour {', '.join(f'`{n}`' for n in self.left)}")


def read_spec(path):
    with open(path, encoding="utf-8") as file:
        spec = Fields(json.load(file), "spec")
    spec.choose("contract", [VERSION])
    return spec
