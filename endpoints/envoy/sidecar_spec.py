"""The spec of a sidecar: every field is either understood here or refused."""

import json

from wirelab_endpoint.contract import Failure, Unsupported
from wirelab_servers import site_spec

# In clear text: a mesh would add TLS between its sidecars, which no spec asks for.
PROTOCOLS = ["h1c", "h2c", "grpcc"]


class Sidecar(site_spec.Site):
    """For the modules of the web servers it is a site like theirs, without documents."""

    is_secure = is_quic = False

    def __init__(self, spec, honours):  # pylint: disable=super-init-not-called
        """`honours`: the table, for each protocol that is spoken to it (see site_spec)."""
        site_spec.drop_nulls(spec)
        self.protocol = spec.choose("protocol", PROTOCOLS)
        self.upstream_protocol = spec.choose("upstream_protocol", PROTOCOLS)
        if self.protocol == "grpcc" and self.upstream_protocol == "h1c":
            raise Unsupported("spec: gRPC cannot be sent on by `upstream_protocol` = 'h1c', which has no room for its status")
        self.honours = honours[self.protocol]
        self.address = site_spec.parse_address(spec.take("address"))
        self.port = spec.count("port", least=0)
        self.upstreams = spec.take("upstreams")
        self.threads = self.honour(spec, "threads")
        self.read_transport(spec)
        spec.end()  # a remaining field would be ignored, so it is unsupported

    @property
    def is_http2(self):
        return is_http2(self.protocol)

    def read_upstreams(self):
        """Its upstreams now, as pairs of address and port."""
        try:
            with open(self.upstreams, encoding="utf-8") as file:
                return [upstream(text) for text in json.load(file)]
        except (OSError, ValueError) as error:
            raise Failure("other", f"reading the upstreams {self.upstreams}: {error}") from error


def is_http2(protocol):
    return protocol != "h1c"


def upstream(text):
    """`192.0.2.1:80` or `[2001:db8::1]:80`."""
    address, _, port = text.rpartition(":")
    return str(site_spec.parse_address(address.strip("[]"))), int(port)
