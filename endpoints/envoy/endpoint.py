"""Envoy as an endpoint of wirelab: files over HTTP/1.1, HTTP/2 and HTTP/3, as direct responses, and a sidecar. See README.md."""

import json
import os
import socket
import sys

from wirelab_servers import choices, datagrams, documents, life, program, sockets
from wirelab_servers.site_spec import ANYTHING, FILES, FLAG, LARGEST_WINDOW, OF_TCP, OF_UDP

import configuration
import sidecar
import sidecar_spec

MOST_THREADS = 1024
TICKET_KEY = 80  # bytes

# Envoy sets TCP_NODELAY on every connection. Its limits of windows are those of its configuration.
ALL = {"threads": range(1, MOST_THREADS + 1)}
CLEAR = {**ALL, **OF_TCP, "no_delay": [True]}
SECURE = {**CLEAR, "key_log": ANYTHING}
WINDOWS = {"stream_window": range(65_535, LARGEST_WINDOW + 1), "connection_window": range(65_535, LARGEST_WINDOW + 1)}
QUIC = {**ALL, **OF_UDP, "gso": FLAG, "gro": FLAG, "early_data": FLAG}
HONOURS = {"h1c": CLEAR, "h1": SECURE, "h2c": {**CLEAR, **WINDOWS}, "h2": {**SECURE, **WINDOWS}, "h3": QUIC}

OF_SIDECARS = {"h1c": CLEAR, "h2c": {**CLEAR, **WINDOWS}, "grpcc": {**CLEAR, **WINDOWS}}


class Envoy(program.Program):
    def describe(self):
        return {**super().describe(), "sidecar": {"protocols": sidecar_spec.PROTOCOLS, "features": []}}


ENVOY = Envoy("Envoy and its direct responses", "envoy", HONOURS, r"/([\d.]+)/", ask=["--version"], language="C++",
              features=[FILES])


def run(site, path, folder):
    workers, kind = choices.workers(site), socket.SOCK_DGRAM if site.is_quic else socket.SOCK_STREAM
    sockets.check_free(site, kind)
    with open(os.path.join(folder, "envoy.json"), "w", encoding="utf-8") as file:
        json.dump(configuration.of(site, documents.below(os.path.join(folder, "documents"))), file)
    with open(os.path.join(folder, "tickets.key"), "wb") as file:
        file.write(os.urandom(TICKET_KEY))
    server = life.Server(
        "Envoy", [path, "--config-path", "envoy.json", "--concurrency", str(workers), "--disable-hot-restart",
                  "--log-level", "error"], folder)

    def configured(port):
        held = sockets.borrow(server.child.pid, port, kind)
        facts = (datagrams if site.is_quic else sockets).settle(held, site)
        for sock in held:
            sock.close()
        if site.is_quic:
            facts["streams"] = choices.STREAMS["h3"]
        return {**facts, "threads": life.threads(server.child.pid, "wrk:worker_")}

    # Each worker has a socket of its own at the port.
    life.serve(server, site, lambda pid: sockets.wait_for(pid, workers, kind), configured)


if __name__ == "__main__":
    if "sidecar" in sys.argv[1:]:
        sidecar.main(ENVOY, OF_SIDECARS)
    else:
        program.main(ENVOY, run)
