"""Code of client and server: the settings of aioquic, the qlog, the counters of a connection."""

import json
import math
import os

from aioquic.quic.configuration import SMALLEST_MAX_DATAGRAM_SIZE, QuicConfiguration
from aioquic.quic.congestion.base import create_congestion_control
from aioquic.quic.logger import QLOG_VERSION, QuicLogger

from wirelab_endpoint.contract import Unsupported
from wirelab_endpoint.udp import Buffers

LARGEST_PAYLOAD = 65527  # RFC 9000, section 18.2
LARGEST_WINDOW = 2**62 - 1  # RFC 9000, section 16
CLAMP_S = 0.001  # aioquic takes no round trip for shorter


class QuicSettings:
    """The transport settings that aioquic has; all others stay in the fields and are refused."""

    def __init__(self, transport):
        self.options = {}
        if congestion := transport.choose("congestion", [None, "reno", "cubic"], None):
            self.options["congestion_control_algorithm"] = congestion
        for field, option, least, most in [
            ("stream_window", "max_stream_data", 1, LARGEST_WINDOW),
            ("connection_window", "max_data", 1, LARGEST_WINDOW),
            ("max_udp_payload", "max_datagram_size", SMALLEST_MAX_DATAGRAM_SIZE, LARGEST_PAYLOAD),
        ]:
            if field in transport.left:
                self.options[option] = transport.count(field, least=least)
                if self.options[option] > most:
                    raise Unsupported(f"transport: `{field}` = {self.options[option]}; QUIC has at most {most}")
        for offload in ("gso", "gro"):  # asyncio sends and receives one datagram per system call
            transport.choose(offload, [False], False)
        self.buffers = Buffers(transport)

    def configuration(self, **further):
        return QuicConfiguration(**self.options, **further)

    def configured(self, configuration, sock):
        """The active settings; congestion control by the object that the library makes of its name."""
        control = create_congestion_control(configuration.congestion_control_algorithm,
                                            max_datagram_size=configuration.max_datagram_size)
        return {
            "congestion": type(control).__module__.rpartition(".")[2],
            "stream_window": configuration.max_stream_data,
            "connection_window": configuration.max_data,
            "windows_grow": True,
            "max_udp_payload": configuration.max_datagram_size,
            "gso": False,
            "gro": False,
            **self.buffers.active_settings(sock),
        }


class Qlog(QuicLogger):
    """Keeps the traces in memory, as QuicLogger does, and writes each to a file of its own when told to."""

    def __init__(self, folder, side):
        super().__init__()
        self.folder, self.side = folder, side

    def write(self):
        for trace in self._traces:
            content = trace.to_dict()
            name = f"{content['common_fields']['ODCID']}_{self.side}.qlog"
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                json.dump({"qlog_format": "JSON", "qlog_version": QLOG_VERSION, "traces": [content]}, file)
        self._traces.clear()


def reading(quic):
    """aioquic's counters of a connection's transport. It counts no losses."""
    known, loss = {"packets_sent": quic._packet_number, "congestion_window": quic._loss.congestion_window}, quic._loss
    if CLAMP_S < loss._rtt_min < math.inf:
        known["round_trip_min_ns"], known["round_trip_ns"] = round(loss._rtt_min * 1e9), round(loss._rtt_smoothed * 1e9)
    return known
