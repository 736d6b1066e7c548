"""The client: connections by aioquic for the shared load generator."""

import asyncio
import dataclasses
import socket
import ssl

from aioquic.quic.connection import QuicConnection
from aioquic.tls import Epoch

from wirelab_endpoint import conversation
from wirelab_endpoint.contract import Failure, Unsupported
from wirelab_endpoint.failure import kind_of
from wirelab_endpoint.job import Job
from wirelab_endpoint.record import now

from http_connection import HttpConnection
from quic_settings import Qlog, QuicSettings
from raw_connection import RawConnection


def run(spec):
    job = Job(spec, ["quic", "h3"], ["none", "resume", "zero_rtt"], logs_quic=True)
    conversation.play(job, Driver)


class Driver:
    def __init__(self, job):
        self.job, self.settings = job, QuicSettings(job.transport)
        self.store, self.negotiated = [], {}
        self.kind = HttpConnection if job.is_http else RawConnection
        self.configuration = self.settings.configuration(
            is_client=True, alpn_protocols=[job.alpn], server_name=job.name, **self.trust(job.tls))
        if job.qlog_dir:
            self.configuration.quic_logger = Qlog(job.qlog_dir, "client")
        probe = self.socket()  # refuses what the kernel does not grant, before `ready`
        self.settled = self.settings.configured(self.configuration, probe)
        probe.close()

    @staticmethod
    def trust(tls):
        options = {}
        if (anchor := tls.take("trust_anchor", None)) is not None:
            options["cafile"] = anchor
        else:  # aioquic by itself would trust the authorities of a Python package
            paths = ssl.get_default_verify_paths()
            options = {"cafile": paths.cafile, "capath": paths.capath}
        if not tls.choose("verify", [True, False]):
            options["verify_mode"] = ssl.CERT_NONE
        elif not any(options.values()):
            raise Unsupported("tls: `trust_anchor` is absent, and this system's Python knows no authorities")
        if key_log := tls.take("key_log", None):
            options["secrets_log_file"] = open(key_log, "a", encoding="ascii")
        return options

    def socket(self):
        sock = socket.socket(socket.AF_INET6 if ":" in self.job.address else socket.AF_INET, socket.SOCK_DGRAM)
        sock.setblocking(False)
        self.settings.buffers.apply(sock)
        return sock

    @property
    def tickets(self):
        return len(self.store)

    def ticket(self):
        """An unused ticket, without the permission for 0-RTT unless the spec asks for it."""
        if not self.store:
            return None
        ticket = self.store.pop()
        return ticket if self.job.resumption == "zero_rtt" else dataclasses.replace(ticket, max_early_data_size=None)

    async def open(self, record):
        job, loop = self.job, asyncio.get_running_loop()
        sock = self.socket()
        try:
            sock.connect((job.address, job.port))  # so that the kernel passes ICMP errors on
        except OSError as error:
            sock.close()
            raise Failure(kind_of(error) or "other", f"connecting to {job.address} port {job.port}: {error}") from error
        wants_tickets = job.resumption != "none"
        configuration = dataclasses.replace(self.configuration, session_ticket=self.ticket()) if wants_tickets \
            else self.configuration
        connection = None

        def came(ticket):
            self.store.append(ticket)
            connection.ticket_came.set()

        quic = QuicConnection(configuration=configuration, session_ticket_handler=came if wants_tickets else None)
        _, connection = await loop.create_datagram_endpoint(lambda: self.kind(quic, self, record), sock=sock)
        try:
            connection.connect(sock.getpeername(), transmit=False)
            connection.early = quic._cryptos[Epoch.ZERO_RTT].send.is_valid()
            if connection.early:
                connection.begin()  # its bytes go with the first flight
            else:
                connection.transmit()
                await connection.established
            record.handshaken = now()
        except BaseException:
            connection.abandon()
            raise
        return connection

    def note(self, negotiated):
        """The negotiated values, from the first connection on, whose handshake was full."""
        self.negotiated = {**negotiated, **self.negotiated}

    def configured(self):
        return {**self.settled, **self.negotiated}

    def finish(self):
        if self.configuration.quic_logger:
            self.configuration.quic_logger.write()
