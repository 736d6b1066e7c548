"""The server: HTTP/3 and bare streams by aioquic."""

import asyncio
from functools import partial

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import QuicServer
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic import events

from wirelab_endpoint import contract
from wirelab_endpoint.accounts import Accounts
from wirelab_endpoint.answers import Answers
from wirelab_endpoint.body import pattern
from wirelab_endpoint.precise_loop import run as run_loop
from wirelab_endpoint.server_spec import Site, bind_udp

from quic_settings import Qlog, QuicSettings, reading
from raw import HEADER
from tickets import Tickets, without_early_data


def run(spec):
    site = Site(spec, ["quic", "h3"], ["files", "echo", "bytes", "delay"])
    settings = QuicSettings(site.transport)
    site.transport.end()  # a remaining setting would be ignored, so it is unsupported
    run_loop(serve(site, settings))


async def serve(site, settings):
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    configuration = settings.configuration(is_client=False, alpn_protocols=[site.alpn])
    configuration.load_cert_chain(site.certificate, site.key)
    if site.key_log:
        configuration.secrets_log_file = open(site.key_log, "a", encoding="ascii")
    if site.qlog_dir:
        configuration.quic_logger = Qlog(site.qlog_dir, "server")
    tickets = Tickets(single_use=site.early_data) if site.resumption else None
    accounts = Accounts()
    sock = bind_udp(site)
    settings.buffers.apply(sock)
    configured = {"threads": 1, **settings.configured(configuration, sock)}
    create = partial(HttpConnection if site.is_http else RawConnection, Answers(site), accounts, site.early_data)
    _, server = await loop.create_datagram_endpoint(
        lambda: QuicServer(configuration=configuration, create_protocol=create,
                           session_ticket_fetcher=tickets and tickets.fetch,
                           session_ticket_handler=tickets and tickets.keep),
        sock=sock)
    contract.emit("ready", port=sock.getsockname()[1], configured=configured)
    contract.Commands(on_stop=lambda: loop.call_soon_threadsafe(stopped.set))
    await stopped.wait()
    transport = accounts.report()
    server.close()
    if configuration.quic_logger:
        configuration.quic_logger.write()
    contract.emit("done", **({"transport": transport} if transport else {}))


class Connection(QuicConnectionProtocol):
    def __init__(self, answers, accounts, early_data, quic, stream_handler=None):
        super().__init__(quic, stream_handler)
        self.answers, self.accounts = answers, accounts
        self.requests, self.delayed = {}, {}  # by stream: received bytes; responses due later
        if not early_data:
            without_early_data(quic)

    def reading(self):
        return reading(self._quic)

    def quic_event_received(self, event):
        kind = type(event)
        if kind is events.StreamDataReceived:
            self.data_received(event)
        elif kind is events.StreamReset or kind is events.StopSendingReceived:
            self.given_up(event)
        elif kind is events.ProtocolNegotiated:
            self.begin()
        elif kind is events.HandshakeCompleted:
            self.accounts.enter(self)
        elif kind is events.ConnectionTerminated:
            self.accounts.leave(self)

    def given_up(self, event):
        """The client wants no answer any more."""
        self.requests.pop(event.stream_id, None)
        if timer := self.delayed.pop(event.stream_id, None):
            timer.cancel()

    def later(self, delay, stream, *answer):
        """Answers after a delay; without one, together with the packets sent after all received ones are handled."""
        if delay:
            self.delayed[stream] = self._loop.call_later(delay, self.answer_late, stream, answer)
        else:
            self.answer(stream, *answer)

    def answer_late(self, stream, answer):
        del self.delayed[stream]
        if self._quic._close_event is None:
            self.answer(stream, *answer)
            self.transmit()


class HttpConnection(Connection):
    def begin(self):
        self.http = H3Connection(self._quic)

    def given_up(self, event):
        self.http.handle_event(event)
        super().given_up(event)

    def data_received(self, event):
        for part in self.http.handle_event(event):
            if type(part) is HeadersReceived:
                self.head_received(part.stream_id, dict(part.headers))
            elif type(part) is DataReceived and part.stream_id in self.requests:
                self.requests[part.stream_id].append(part.data)
            else:
                continue
            if part.stream_ended and (body := self.requests.pop(part.stream_id, None)) is not None:
                self.answer(part.stream_id, 200, b"".join(body))

    def head_received(self, stream, headers):
        method, path = headers.get(b":method", b"").decode(), headers.get(b":path", b"").decode(errors="replace")
        if self.answers.echoes(method, path):
            self.requests[stream] = []
        elif b":method" in headers:  # without it, it is the end of a request that was answered
            status, body, delay = self.answers.get(path) if method == "GET" else (404, b"", 0)
            self.later(delay, stream, status, body)

    def answer(self, stream, status, body):
        self.http.send_headers(stream, [(b":status", str(status).encode()), (b"content-length", str(len(body)).encode())],
                               end_stream=not body)
        if body:
            self.http.send_data(stream, body, end_stream=True)


class RawConnection(Connection):
    def begin(self):
        pass

    def data_received(self, event):
        received = self.requests.setdefault(event.stream_id, bytearray())
        if len(received) < HEADER.size:
            received += event.data[:HEADER.size - len(received)]  # the body is not needed
        if event.end_stream:
            del self.requests[event.stream_id]
            if len(received) == HEADER.size:
                size, _, delay = HEADER.unpack(received)
                self.later(delay / 1e6, event.stream_id, size)
            else:
                self._quic.reset_stream(event.stream_id, 1)  # not a request

    def answer(self, stream, size):
        self._quic.send_stream_data(stream, pattern(size), end_stream=True)
