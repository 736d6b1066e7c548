"""The life of a web server as a child of this process: start, probes until it answers, watch, stop."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time

from wirelab_endpoint import contract
from wirelab_endpoint.contract import Failure
from wirelab_servers import probe

STARTING_S = 15  # the limit for its first answer; wirelab itself gives up later
ANSWERING_S = 1  # the time-out of a probe, after which this checks whether the server still lives
BETWEEN_S = 0.005  # between two probes
KEPT = 50  # lines of its output
STOPPING_S = 1  # then it is killed; the contract's limit is two seconds


class Server:
    """A web server in the foreground, in the process group of this process."""

    def __init__(self, name, command, folder, privileges=(), environment=None, descriptors=()):
        self.name, self.words = name, []
        allow_many_files()
        # setpriv replaces itself by the server. If this process dies alone, the kernel stops the server.
        self.child = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", *privileges, *command], cwd=folder, pass_fds=descriptors,
            env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)  # standard output is for events only
        self.log = threading.Thread(target=self.pass_on, daemon=True)
        self.log.start()

    def pass_on(self):
        """Passes the server's messages on to the trial's log, and keeps some of them."""
        for line in self.child.stdout:
            sys.stderr.buffer.write(line)
            sys.stderr.buffer.flush()
            self.words = [*self.words[:KEPT - 1], line.decode(errors="replace").strip()]  # the first ones and the last

    @property
    def last_words(self):
        return next((line for line in reversed(self.words) if line), "none")

    def await_answer(self, site, find_port, over):
        """The server's port, and the facts of its first answer; None if `over` was set before.

        It is not probed before `find_port` has found all of its workers, and returned the port.
        """
        deadline, trouble = time.monotonic() + STARTING_S, "not all of its workers started"
        while time.monotonic() < deadline and not over.is_set():
            if self.child.poll() is not None:
                raise self.ended("before it was ready")
            try:
                if port := find_port(self.child.pid):
                    return port, probe.ask(site, port, ANSWERING_S)
            except OSError as error:
                trouble = error
            over.wait(BETWEEN_S)
        if over.is_set():
            return None
        raise Failure("other", f"{self.name} was started and did not become ready within {STARTING_S} s: {trouble}; "
                               f"its last words: {self.last_words}")

    def ended(self, when):
        self.log.join(STOPPING_S)
        return Failure("other", f"{self.name} ended with status {self.child.returncode} {when}; "
                                f"its last words: {self.last_words}")

    def watch(self, over):
        """Sets `over` when the server has ended."""
        def wait():
            self.child.wait()
            over.set()

        threading.Thread(target=wait, daemon=True).start()

    def stop(self):
        """Ends it, with all open connections. Kills the processes that it leaves behind."""
        workers = children(self.child.pid)
        try:
            self.child.terminate()
            self.child.wait(STOPPING_S)
        except subprocess.TimeoutExpired:
            for pid in [self.child.pid, *workers]:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            self.child.wait()
        self.log.join(STOPPING_S)


def serve(server, site, find_port, configured):
    """Prints `ready` when the server answers, and `done` when it has stopped after the word `stop`.

    `find_port` gets a process and returns its port once all of its workers run. `configured` gets the port and returns the
    active settings; the facts of the answer are added.
    """
    over = threading.Event()
    told = []
    contract.Commands(on_stop=lambda: (told.append("stop"), over.set()))
    try:
        if (found := server.await_answer(site, find_port, over)) is not None:
            port, answer = found
            contract.emit("ready", port=port, configured={**configured(port), **answer})
            server.watch(over)
            over.wait()
        if not told:
            raise server.ended("by itself")
    finally:
        server.stop()
    contract.emit("done")


def children(pid):
    """The children of a process."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            continue
        if parent == pid:
            found.append(int(name))
    return found


def threads(pid, name=""):
    """The number of a process's threads whose names begin with the prefix."""
    found = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/comm", encoding="utf-8", errors="replace") as file:
            found += file.read().startswith(name)
    return found


def allow_many_files():
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
