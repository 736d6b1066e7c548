"""A client's connections: what those of HTTP/3 and of bare QUIC share, on aioquic's asyncio protocol."""

import asyncio

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.quic import events
from cryptography.hazmat.primitives.serialization import Encoding

from wirelab_endpoint.contract import Failure
from wirelab_endpoint.failure import kind_of
from wirelab_endpoint.record import now

from ending import why
from quic_settings import reading


class Exchange:
    """A request under way on a stream."""

    __slots__ = ("record", "chunks", "done")

    def __init__(self, record, chunks, done):
        self.record, self.chunks, self.done = record, chunks, done

    def data(self, data, ended):
        record = self.record
        record.bytes_in += len(data)
        if self.chunks is not None:
            self.chunks.append(data)
        if ended:
            record.last_byte = now()
            if not self.done.done():
                self.done.set_result(None)

    def fail(self, failure):
        if not self.done.done():
            self.done.set_exception(failure)


class Connection(QuicConnectionProtocol):
    """The common part of both kinds. `opener`: the record of the request that opens it."""

    no_error = cancelled = 0

    def __init__(self, quic, driver, opener):
        super().__init__(quic)
        self.driver, self.job, self.opener = driver, driver.job, opener
        self.established, self.ticket_came = self._loop.create_future(), asyncio.Event()
        self.early, self.failure, self.exchanges = False, None, {}

    @property
    def is_open(self):
        return self.failure is None

    async def request(self, record, chunks=None):
        if self.failure:
            raise self.failure
        stream = self._quic.get_next_available_stream_id()
        exchange = self.exchanges[stream] = Exchange(record, chunks, self._loop.create_future())
        self.send(stream)
        record.bytes_out = len(self.job.body)
        self.transmit()
        try:
            await exchange.done
        except asyncio.CancelledError:  # a deadline passed: the stream is useless
            if self.is_open:
                self._quic.reset_stream(stream, self.cancelled)
                self._quic.stop_stream(stream, self.cancelled)
                self.transmit()
            raise
        finally:
            del self.exchanges[stream]

    def quic_event_received(self, event):
        kind = type(event)
        if kind is events.StreamDataReceived:
            self.data_received(event)
        elif kind is events.HandshakeCompleted:
            self.handshake_completed(event)
        elif kind is events.StreamReset:
            self.reset_received(event)

    def reset_received(self, event):
        if exchange := self.exchanges.get(event.stream_id):
            exchange.fail(Failure("reset", f"the server reset stream {event.stream_id}, code {event.error_code:#x}"))

    def handshake_completed(self, event):
        if self.early:
            proof = "early_accepted" if event.early_data_accepted else "early_rejected"
        else:
            proof = "resumed" if event.session_resumed else "full"
        self.opener.handshake, self.opener = proof, None
        tls = self._quic.tls
        negotiated = {"alpn": event.alpn_protocol, "cipher": f"TLS_{tls.key_schedule.cipher_suite.name}"}
        if proof == "full":
            chain = [tls._peer_certificate, *tls._peer_certificate_chain]
            negotiated["certificate_chain_bytes"] = sum(len(one.public_bytes(Encoding.DER)) for one in chain)
        self.driver.note(negotiated)
        if event.alpn_protocol != self.job.alpn:
            self.lost(Failure("protocol", f"{event.alpn_protocol} was negotiated, not {self.job.alpn}"))
        elif not self.early:
            self.begin()
            if not self.established.done():
                self.established.set_result(None)

    def _process_events(self):
        super()._process_events()
        # The event ConnectionTerminated comes only after the closing period (RFC 9000, section 10.2).
        if self.failure is None and (end := self._quic._close_event) is not None:
            self.lost(why(end))

    def error_received(self, exc):
        """An ICMP error of the socket."""
        self.lost(Failure(kind_of(exc) or "other", f"to {self.job.address} port {self.job.port}: {exc}"))

    def lost(self, failure):
        """The connection has ended, with all its requests."""
        if self.failure is None:
            self.failure = failure
            if not self.established.done():
                self.established.set_exception(failure)
                self.established.exception()  # after early data, no request waits for it
            for exchange in self.exchanges.values():
                exchange.fail(failure)

    def reading(self):
        return reading(self._quic)

    async def close(self):
        if self.is_open and self.job.resumption != "none" and not self.ticket_came.is_set():
            # It comes with the server's next flight, for which aioquic itself allows this long.
            timeout = self._quic._loss.get_probe_timeout() + 0.1
            try:
                await asyncio.wait_for(self.ticket_came.wait(), timeout)
            except TimeoutError:
                pass
        self.abandon()

    def abandon(self):
        """Closes at once and ignores later packets, without waiting for the closing period."""
        if self.failure is None:
            self.failure = Failure("other", "the connection was closed")
            self._quic.close(error_code=self.no_error)
            self.transmit()
        if self._timer is not None:
            self._timer.cancel()
        self._transport.close()
