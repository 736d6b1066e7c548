"""The client: requests by httpx's asyncio API for the shared load generator."""

import ssl

import anyio._backends._asyncio  # noqa: F401: anyio would load it with the first connection, and ready means loaded
import anyio.streams.tls  # noqa: F401
import httpcore
import httpx

from wirelab_endpoint import conversation
from wirelab_endpoint.contract import Failure
from wirelab_endpoint.job import Job
from wirelab_endpoint.record import now
from wirelab_endpoint.tcp import TcpOptions
from wirelab_endpoint.tcp_info import reading
from wirelab_endpoint.tls_facts import negotiated

import prepared
import tls_context
from failures import classify

# httpcore announces h2's initial window for a stream and adds this much to each, and to the connection.
ADDED, INITIAL = 2**24, 65535
SETTINGS = b"\x04"  # the type of the frame that a server begins with (RFC 9113, section 3.4)


def run(spec):
    job = Job(spec, ["h1c", "h1", "h2c", "h2"], ["none", "resume"])
    conversation.play(job, Driver)


class Driver:
    def __init__(self, job):
        self.job, self.is_http2 = job, job.protocol in ("h2c", "h2")
        self.options = TcpOptions(job.transport)
        self.settled = self.options.probe()  # refuses what the kernel does not have, before `ready`
        if self.is_http2:
            for name in ("stream_window", "connection_window"):
                self.settled[name] = job.transport.choose(name, [INITIAL + ADDED], INITIAL + ADDED)
        self.sessions, self.read = [], False
        self.context = tls_context.make(job.tls, job.alpn, self.sessions) if job.tls else None
        self.unused = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # for httpx, which would load authorities for each client
        host = f"[{job.address}]" if ":" in job.address else job.address
        self.url = httpx.URL(f"{'https' if job.alpn else 'http'}://{host}:{job.port}/")
        self.headers = [("host", job.name), *job.headers]
        self.extensions = {"target": job.path.encode()}  # unchanged by httpx

    @property
    def tickets(self):
        return len(self.sessions)

    async def open(self, record):
        job, stream = self.job, None
        try:
            stream = await prepared.connect(job.address, job.port)
            record.connected = now()
            self.options.apply(stream.get_extra_info("socket"))
            if self.context:
                stream = await stream.start_tls(self.context, job.name)
                record.handshaken = now()
                tls = stream.get_extra_info("ssl_object")
                record.handshake = "resumed" if tls.session_reused else "full"
                if tls.selected_alpn_protocol() != job.alpn:
                    raise Failure("protocol", f"{tls.selected_alpn_protocol()} was negotiated, not {job.alpn}")
            self.note(stream)
        except BaseException as error:
            if stream is not None:
                await stream.aclose()
            if isinstance(error, Exception) and not isinstance(error, Failure):
                raise classify(error, f"connecting to {job.address} port {job.port}") from error
            raise
        return Connection(self, stream)

    def note(self, stream):
        """The active settings of the first connection, the check request's."""
        if not self.read:
            self.read = True
            self.settled.update(self.options.active_settings(stream.get_extra_info("socket")))
            if self.context:
                self.settled.update(negotiated(stream.get_extra_info("ssl_object")))

    def client(self, stream):
        """A client of its own for every connection, so that the engine can choose the connection of a request."""
        limits = httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=None)
        client = httpx.AsyncClient(verify=self.unused, http1=not self.is_http2, http2=self.is_http2, limits=limits,
                                   timeout=None, trust_env=False)
        client._transport._pool._network_backend = prepared.Prepared(stream)
        return client

    def configured(self):
        return self.settled

    def finish(self):
        """Nothing is left to write."""


class Connection:
    def __init__(self, driver, stream):
        self.driver, self.stream = driver, prepared.Secured(stream)
        self.client = driver.client(self.stream)
        self.pool, self.failed = self.client._transport._pool, False

    @property
    def is_open(self):
        """Also checks whether the server closed it meanwhile; httpcore would then open another connection."""
        connections = self.pool.connections
        return not self.failed and not any(one.is_closed() or one.has_expired() for one in connections)

    async def request(self, record, chunks=None):
        driver, job = self.driver, self.driver.job
        try:
            request = httpx.Request(job.method, driver.url, headers=driver.headers, content=job.body or None,
                                    extensions=driver.extensions)
            record.bytes_out = len(job.body)
            response = await self.client.send(request, stream=True)
            record.first_byte, record.status = now(), response.status_code
            async for chunk in response.aiter_raw():
                record.bytes_in += len(chunk)
                if chunks is not None:
                    chunks.append(chunk)
            record.last_byte = now()
        except Exception as error:
            self.failed = True
            failure = classify(error, f"{job.method} {job.path}")
            if driver.is_http2 and failure.kind == "truncated" and self.stream.beginning[3:4] not in (b"", SETTINGS):
                failure.kind = "protocol"  # which h2 does not see before the first frame is whole
            raise failure from error

    def reading(self):
        return reading(self.stream.get_extra_info("socket"))

    async def close(self):
        driver = self.driver
        try:
            if driver.job.resumption == "resume" and not self.failed:
                tls = self.stream.get_extra_info("ssl_object")
                if not tls.session.has_ticket:
                    await prepared.await_ticket(self.stream)
                if tls.session.has_ticket:
                    driver.sessions.append(tls.session)
            await self.client.aclose()
            await self.stream.aclose()
        except (OSError, ssl.SSLError, httpx.TransportError, httpcore.NetworkError):
            pass  # it is closed in any case
