"""Envoy as a sidecar: it sends each request to the next of its upstreams. See README.md."""

import argparse
import json
import os
import queue
import socket
import sys
import tempfile
import threading
import time

from wirelab_endpoint import contract
from wirelab_endpoint.contract import Failure
from wirelab_servers import choices, life, probe, sockets

import admin
import sidecar_configuration
import sidecar_spec

STARTING_S = 15  # the limit for its start, and for a change of upstreams
BETWEEN_S = 0.002  # between two probes
ENDED = object()  # returned in place of a word


class Stopped(Exception):
    """The word `stop` came during another wait."""


def main(envoy, honours):
    parser = argparse.ArgumentParser()
    parser.add_argument("--program")
    parser.add_argument("role", choices=["sidecar"])
    parser.add_argument("--spec", metavar="FILE", required=True)
    arguments = parser.parse_args()
    envoy.program = arguments.program or envoy.program
    contract.conduct(lambda: run(envoy, honours, arguments.spec))


def run(envoy, honours, path):
    spec = sidecar_spec.Sidecar(contract.read_spec(path), honours)
    # Beside the spec: if this process is killed, the folder is removed with the rest of the run.
    with tempfile.TemporaryDirectory(prefix="sidecar-", dir=os.path.dirname(os.path.abspath(path))) as folder:
        proxy = Proxy(spec, envoy.path(), folder)
        try:
            proxy.serve()
        except Stopped:
            pass
        finally:
            proxy.server.stop()
    contract.emit("done")


class Proxy:
    def __init__(self, spec, program, folder):
        self.spec, self.folder, self.version = spec, folder, 0
        self.workers = choices.workers(spec)
        sockets.check_free(spec, socket.SOCK_STREAM)
        upstreams = self.write_upstreams()
        with open(os.path.join(folder, "envoy.json"), "w", encoding="utf-8") as file:
            json.dump(sidecar_configuration.of(spec), file)
        self.words, self.stopped = queue.Queue(), threading.Event()
        self.server = life.Server("Envoy", [program, "--config-path", "envoy.json", "--concurrency", str(self.workers),
                                            "--disable-hot-restart", "--log-level", "error"], folder)
        self.admin, self.upstreams = admin.Admin(folder), upstreams
        for hear in [self.hear_words, self.hear_end]:
            threading.Thread(target=hear, daemon=True).start()

    def hear_words(self):
        for line in sys.stdin:
            if line.strip() == "stop":
                break
            self.words.put(line.strip())
        self.stopped.set()
        self.words.put("stop")

    def hear_end(self):
        self.server.child.wait()
        self.words.put(ENDED)

    def serve(self):
        port = self.wait_until("started", self.port)
        self.wait_until("knew its upstreams", self.knows)
        contract.emit("ready", port=port, configured=self.configured(port))
        while (word := self.words.get()) != "stop":
            if word is ENDED:
                raise self.server.ended("by itself")
            if word == "count":
                contract.emit("counted", requests=self.admin.answered())
            elif word == "reach":
                self.upstreams = self.write_upstreams()
                self.wait_until("knew its new upstreams", self.knows)
                contract.emit("reached")
            else:
                raise Failure("other", f"told `{word}`, which is no word for a sidecar")

    def write_upstreams(self):
        upstreams = self.spec.read_upstreams()
        self.version += 1
        sidecar_configuration.write_members(self.folder, upstreams, self.version)
        return sorted(upstreams)

    def port(self):
        """Its port, once each worker has its own socket there."""
        return sockets.wait_for(self.server.child.pid, self.workers, socket.SOCK_STREAM)

    def knows(self):
        return self.admin.members() == self.upstreams

    def configured(self, port):
        held = sockets.borrow(self.server.child.pid, port)
        facts = sockets.settle(held, self.spec)
        for sock in held:
            sock.close()
        if self.spec.is_http2:
            with socket.create_connection((str(self.spec.address), port), timeout=STARTING_S) as sock:
                facts.update(probe.settings(sock))
        return {**facts, "threads": life.threads(self.server.child.pid, "wrk:worker_"), "balance": "round robin",
                "upstream_protocol": self.spec.upstream_protocol}

    def wait_until(self, what, holds):
        """Asks until `holds` returns a value, and returns it."""
        deadline, trouble = time.monotonic() + STARTING_S, "it did not answer"
        while time.monotonic() < deadline:
            if self.stopped.is_set():
                raise Stopped
            if self.server.child.poll() is not None:
                raise self.server.ended(f"before it {what}")
            try:
                if found := holds():
                    return found
            except OSError as error:
                trouble = error
            time.sleep(BETWEEN_S)
        raise Failure("other", f"Envoy did not say within {STARTING_S} s that it {what}: {trouble}; its last words: "
                               f"{self.server.last_words}")
