"""Session tickets that a server gave. aioquic leaves it to the application to keep them."""

from collections import OrderedDict

MOST = 10_000  # tickets; the oldest go first


class Tickets:
    """`single_use`: a ticket that was used is gone, so that 0-RTT data cannot be replayed (RFC 8446, section 8.1)."""

    def __init__(self, single_use):
        self.single_use, self.kept = single_use, OrderedDict()

    def keep(self, ticket):
        self.kept[ticket.ticket] = ticket
        if len(self.kept) > MOST:
            self.kept.popitem(last=False)

    def fetch(self, name):
        return self.kept.pop(name, None) if self.single_use else self.kept.get(name)


def without_early_data(quic):
    """aioquic allows 0-RTT with every ticket and has no setting for it; this takes it out of those of a connection."""
    initialize = quic._initialize

    def initialize_without(peer_cid):
        initialize(peer_cid)
        quic.tls._max_early_data = None

    quic._initialize = initialize_without
