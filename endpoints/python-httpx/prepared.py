"""A connection that is made before httpx asks for it, by the network code of httpcore itself.

httpx connects with the first request. The load generator connects before, so that the times are apart and kept connections
exist before the window; httpcore then finds both its steps done.
"""

import anyio
from httpcore import AnyIOBackend, AsyncNetworkBackend, AsyncNetworkStream

LEFT_S = 0.1  # the longest wait for a session ticket


class Prepared(AsyncNetworkBackend):
    """Hands out one connection, a `Secured`, once."""

    def __init__(self, stream):
        self.stream = stream

    async def connect_tcp(self, host, port, timeout=None, local_address=None, socket_options=None):
        stream, self.stream = self.stream, None
        if stream is None:
            raise OSError("httpx asks for a second connection")
        return stream


class Secured(AsyncNetworkStream):
    """TLS, if any, is already set up. `beginning`: the first bytes that the server sent."""

    def __init__(self, stream):
        self.stream, self.beginning = stream, b""
        self.write, self.aclose, self.get_extra_info = stream.write, stream.aclose, stream.get_extra_info

    async def read(self, max_bytes, timeout=None):
        data = await self.stream.read(max_bytes, timeout)
        self.beginning = data[:16]
        self.read = self.stream.read  # from now on httpcore uses its stream directly
        return data

    async def start_tls(self, ssl_context, server_hostname=None, timeout=None):
        return self


async def connect(address, port):
    return await AnyIOBackend().connect_tcp(address, port)


async def await_ticket(stream):
    """Reads what the server sends unasked: tickets, which TLS itself keeps."""
    with anyio.move_on_after(LEFT_S):
        await stream.read(1)
