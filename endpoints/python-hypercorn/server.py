"""The server: Hypercorn in the one event loop of this process, on a socket that it is handed."""

import asyncio
import ssl
import sys

from hypercorn.asyncio import serve
from hypercorn.config import Config

from wirelab_endpoint import contract
from wirelab_endpoint.answers import Answers
from wirelab_endpoint.contract import Failure, Unsupported
from wirelab_endpoint.precise_loop import run as run_loop
from wirelab_endpoint.server_spec import Site

from application import application
from settings import QuicSettings, TcpSettings

NEVER = 10**9  # seconds, or requests
STOPPING_S = 0.5  # after that, connections that are still open are cut; the contract gives two seconds


def run(spec):
    site = Site(spec, ["h1c", "h1", "h2c", "h2", "h3"], ["files", "echo", "bytes", "delay"])
    if site.early_data:
        raise Unsupported("tls: `early_data`: neither Python's `ssl` nor Hypercorn's HTTP/3 has 0-RTT")
    settings = (QuicSettings if site.is_quic else TcpSettings)(site)
    site.transport.end()  # a remaining setting would be ignored, so it is unsupported
    run_loop(play(site, settings))


class Configuration(Config):
    """Hypercorn's own but for what every server of wirelab has alike."""

    keep_alive_timeout, keep_alive_max_requests = NEVER, NEVER
    graceful_timeout = STOPPING_S
    backlog = 65535  # the kernel lowers it to net.core.somaxconn
    loglevel = "WARNING"

    def __init__(self, site):
        super().__init__()
        self.site = site
        if site.alpn:
            self.certfile, self.keyfile, self.alpn_protocols = site.certificate, site.key, [site.alpn]

    def create_ssl_context(self):
        context = super().create_ssl_context()
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        if not self.site.resumption:
            context.num_tickets = 0
        if self.site.key_log:
            context.keylog_filename = self.site.key_log
        return context


async def play(site, settings):
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    sock = settings.socket()
    port, configured = sock.getsockname()[1], {"threads": 1, **settings.active_settings(sock)}
    configuration = Configuration(site)
    configuration.bind, configuration.quic_bind = [], []
    setattr(configuration, "quic_bind" if site.is_quic else "bind", [f"fd://{sock.detach()}"])

    async def told_to_stop():
        """Hypercorn awaits this when it accepts connections."""
        contract.emit("ready", port=port, configured=configured)
        contract.Commands(on_stop=lambda: loop.call_soon_threadsafe(stopped.set))
        await stopped.wait()

    serving = loop.create_task(serve(application(Answers(site)), configuration, shutdown_trigger=told_to_stop))
    telling = loop.create_task(stopped.wait())
    await asyncio.wait([serving, telling], return_when=asyncio.FIRST_COMPLETED)
    if not stopped.is_set():
        raise serving.exception() or Failure("other", "Hypercorn ended by itself")
    await asyncio.wait([serving], timeout=2 * STOPPING_S)
    if serving.done() and serving.exception():  # of connections that were cut
        print(f"while Hypercorn stopped: {serving.exception()}", file=sys.stderr)
    contract.emit("done")
