"""Envoy's own reports, from its administration socket."""

import http.client
import json
import os
import socket

from sidecar_configuration import ADMIN, CLUSTER, STAT

ANSWERING_S = 1


class Admin(http.client.HTTPConnection):
    """HTTP at a socket in a folder, whose path may be longer than a socket's may be."""

    def __init__(self, folder):
        super().__init__("admin", timeout=ANSWERING_S)
        self.folder = os.open(folder, os.O_PATH | os.O_DIRECTORY)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(f"/proc/self/fd/{self.folder}/{ADMIN}")

    def ask(self, path):
        """The answer, of any status. OSError: none."""
        try:
            self.request("GET", path)
            return self.getresponse().read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise OSError(f"asking Envoy for {path}: {error or type(error).__name__}") from error

    def members(self):
        """Its upstreams, as pairs of address and port."""
        for one in json.loads(self.ask("/clusters?format=json")).get("cluster_statuses", []):
            if one["name"] == CLUSTER:
                places = [status["address"]["socket_address"] for status in one.get("host_statuses", [])]
                return sorted((place["address"], place["port_value"]) for place in places)
        return []

    def answered(self):
        """The number of requests that it has answered."""
        name = f"http.{STAT}.downstream_rq_completed"
        for line in self.ask(f"/stats?filter=^{name}$").decode().splitlines():
            key, _, value = line.partition(": ")
            if key == name:
                return int(value)
        raise OSError(f"Envoy has no counter {name}")
