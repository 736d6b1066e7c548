"""The client: requests by niquests' asyncio API for the shared load generator."""

import importlib
import os
import ssl

import niquests
import wassima
from niquests.packages.urllib3.util import SKIP_HEADER

from wirelab_endpoint import conversation
from wirelab_endpoint.contract import Failure, Unsupported
from wirelab_endpoint.job import Job
from wirelab_endpoint.record import now
from wirelab_endpoint.tcp_info import reading

from failures import classify
from settings import QuicSettings, TcpSettings
from watched import watched

VERSIONS = {"h1c": 11, "h1": 11, "h2c": 20, "h2": 20, "h3": 30}
LATE = {  # modules that the first connection would load; ready means loaded
    11: ["urllib3.contrib.hface.protocols.http1._h11"],
    20: ["urllib3.contrib.hface.protocols.http2._h2"],
    30: ["urllib3.contrib.hface.protocols.http3._qh3"],
}


def run(spec):
    job = Job(spec, list(VERSIONS), ["none"])
    conversation.play(job, Driver)


class Driver:
    tickets = 0

    def __init__(self, job):
        self.job, self.version = job, VERSIONS[job.protocol]
        if self.version == 30 and job.body:
            raise Unsupported("request: `body_size`: by HTTP/3, niquests stops sending a body when the response begins "
                              "before its end, and waits for ever; see README.md")
        self.settings = (QuicSettings if self.version == 30 else TcpSettings)(job.transport)
        self.settled = self.settings.probe()  # refuses what the kernel does not grant, before `ready`
        self.read = False
        self.url = f"{'https' if job.alpn else 'http'}://{job.name}:{job.port}{job.path}"
        # The other clients do not send the fields that niquests would add.
        self.headers = {"host": job.name, "user-agent": SKIP_HEADER, "accept-encoding": SKIP_HEADER,
                        **dict(job.headers)}
        self.verify = self.trust(job.tls) if job.tls else True
        for module in [*LATE[self.version], "urllib3.contrib.resolver._async.in_memory",
                       "urllib3.contrib.resolver._async.system"]:
            importlib.import_module(module)
        if job.tls:
            wassima.generate_ca_bundle()  # niquests always asks for it; kept from then on

    def trust(self, tls):
        if (key_log := tls.take("key_log", None)) is not None:
            if self.version == 30:
                tls.left["key_log"] = key_log  # qh3 would begin the file anew with every connection: unsupported
            else:
                os.environ["SSLKEYLOGFILE"] = key_log
        verify, anchor = tls.choose("verify", [True, False]), tls.take("trust_anchor", None)
        return (anchor or True) if verify else False

    async def open(self, record):
        """A session of its own for every connection, so that the engine can choose the connection of a request."""
        job = self.job
        session = niquests.AsyncSession(
            resolver=f"in-memory://default?hosts={job.name}:{job.address}", headers=self.headers, verify=self.verify,
            multiplexed=job.streams > 1, pool_connections=1, pool_maxsize=1, retries=0, revocation_configuration=None,
            keepalive_delay=None, keepalive_idle_window=None, disable_http1=self.version != 11,
            disable_http2=self.version != 20, disable_http3=self.version != 30)
        session.trust_env, connection = False, None
        try:
            adapter = session.get_adapter(self.url)
            pool = await adapter.get_connection(self.url)
            if job.alpn:
                adapter.cert_verify(pool, self.url, self.verify, None)
                pool.ssl_minimum_version = ssl.TLSVersion.TLSv1_3
            pool.ConnectionCls = watched(pool.ConnectionCls)
            connection = await pool._new_conn()
            connection.record = record
            await connection.connect()
            if job.alpn:
                record.handshaken = now()
                record.handshake = "resumed" if self.settings.was_resumed(connection) else "full"
            self.settings.apply(connection.sock)
            await pool._put_conn(connection)
            if not self.read:  # of the first connection, the check request's
                self.settled, self.read = {**self.settled, **self.settings.active_settings(connection)}, True
            if (alpn := self.settings.alpn(connection)) != job.alpn:
                raise Failure("protocol", f"{alpn} was negotiated, not {job.alpn}")
        except BaseException as error:
            await session.close()
            if isinstance(error, Exception) and not isinstance(error, Failure):
                raise classify(error, f"connecting to {job.address} port {job.port}", connection) from error
            raise
        return Connection(self, session, connection)

    def configured(self):
        return self.settled

    def finish(self):
        """Nothing is left to write."""


class Connection:
    def __init__(self, driver, session, connection):
        self.driver, self.session, self.connection = driver, session, connection
        self.sock = connection.sock  # another one would be a connection that niquests opened by itself

    @property
    def is_open(self):
        return self.connection.sock is self.sock and self.connection.is_connected

    async def request(self, record, chunks=None):
        driver, job = self.driver, self.driver.job
        try:
            record.bytes_out = len(job.body)
            response = await self.session.request(job.method, driver.url, data=job.body or None, stream=True,
                                                  allow_redirects=False, timeout=None)
            if response.lazy:
                await self.session.gather(response)
            record.first_byte, record.status = now(), response.status_code
            async for chunk in await response.iter_raw(65536):
                record.bytes_in += len(chunk)
                if chunks is not None:
                    chunks.append(chunk)
            record.last_byte = now()
        except Exception as error:
            # The end of an HTTP/2 connection within a body is a ProtocolError without words.
            otherwise = "protocol" if record.first_byte is None else "truncated"
            raise classify(error, f"{job.method} {job.path}", self.connection, otherwise) from error
        if response.http_version != driver.version:
            raise Failure("protocol", f"the response came by HTTP version {response.http_version / 10}")
        if self.connection.sock not in (self.sock, None):
            raise Failure("reset", "the connection was lost, and niquests replaced it by itself")

    def reading(self):
        return reading(self.sock) if self.driver.version != 30 else None

    async def close(self):
        await self.session.close()
