"""Facts about a connection that niquests does not report: the moment of TCP's connection, and the kernel's error at its end."""

import functools
import socket

from wirelab_endpoint.record import now


@functools.cache
def watched(kind):
    """A class of urllib3-future's connections that notes both; the one in `record`, which is set before it connects."""

    class Watched(kind):
        record = None
        trouble = None  # the last error of its socket, which urllib3-future takes for the end of the stream

        @property
        def _connect_timings(self):
            return self._timings

        @_connect_timings.setter
        def _connect_timings(self, timings):
            self._timings = timings
            if timings is not None and self.socket_kind == socket.SOCK_STREAM:
                self.record.connected = now()

        async def _new_conn(self):
            sock = await super()._new_conn()
            self.watch(sock)
            return sock

        def watch(self, sock):
            receive = sock.recv

            async def recv(size=-1):
                try:
                    return await receive(size)
                except OSError as error:
                    self.trouble = error
                    raise

            sock.recv = recv

    return Watched
