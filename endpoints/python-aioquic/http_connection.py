"""Requests by HTTP/3."""

from aioquic.h3.connection import ErrorCode, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived

from wirelab_endpoint.record import now

from connection import Connection


class HttpConnection(Connection):
    no_error, cancelled = ErrorCode.H3_NO_ERROR, ErrorCode.H3_REQUEST_CANCELLED

    def begin(self):
        job = self.job
        self.http = H3Connection(self._quic)
        self.headers = [(b":method", job.method.encode()), (b":scheme", b"https"), (b":authority", job.name.encode()),
                        (b":path", job.path.encode())]
        self.headers += [(name.encode(), value.encode()) for name, value in job.headers]

    def send(self, stream):
        body = self.job.body
        self.http.send_headers(stream, self.headers, end_stream=not body)
        if body:
            self.http.send_data(stream, body, end_stream=True)

    def reset_received(self, event):
        self.http.handle_event(event)
        super().reset_received(event)

    def data_received(self, event):
        for part in self.http.handle_event(event):
            exchange = self.exchanges.get(part.stream_id)
            if exchange is None:
                continue  # given up
            if type(part) is DataReceived:
                exchange.data(part.data, part.stream_ended)
            elif type(part) is HeadersReceived:
                status = int(dict(part.headers).get(b":status", 0))
                if status >= 200:
                    exchange.record.first_byte, exchange.record.status = now(), status
                exchange.data(b"", part.stream_ended)
