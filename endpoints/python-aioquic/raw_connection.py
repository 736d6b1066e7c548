"""Requests on bare streams."""

from wirelab_endpoint.record import now

from connection import Connection
from raw import HEADER, delay_of


class RawConnection(Connection):
    def begin(self):
        job = self.job
        wanted = job.expect["body_size"] if job.expect else len(job.body)
        self.message = HEADER.pack(wanted, len(job.body), delay_of(job.path)) + job.body

    def send(self, stream):
        self._quic.send_stream_data(stream, self.message, end_stream=True)

    def data_received(self, event):
        if exchange := self.exchanges.get(event.stream_id):
            if exchange.record.first_byte is None:
                exchange.record.first_byte = now()
            exchange.data(event.data, event.end_stream)
