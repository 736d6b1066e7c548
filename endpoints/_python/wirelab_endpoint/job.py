"""A client's spec: every field is understood here or by the library's driver, or refused."""

from wirelab_endpoint.body import pattern
from wirelab_endpoint.contract import Failure, Fields, Unsupported
from wirelab_endpoint.protocols import ALPN, HTTP, MULTIPLEXING


class Job:
    """A client's job. The library's driver takes `transport` and `tls`."""

    def __init__(self, spec, protocols, resumptions, logs_quic=False):
        drop_nulls(spec)
        self.protocol = spec.choose("protocol", protocols)
        self.is_http, self.multiplexes = self.protocol in HTTP, self.protocol in MULTIPLEXING
        self.alpn = ALPN.get(self.protocol)
        self.address, self.port, self.name = spec.take("address"), spec.count("port"), spec.take("server_name")
        self.tls = self.read_tls(spec)
        self.read_request(spec.inner("request"))
        self.read_connections(spec.inner("connections"))
        self.read_schedule(spec.inner("schedule"))
        self.extent = read_extent(spec.inner("extent"))
        self.warm_up = read_extent(spec.inner("warm_up")) if "warm_up" in spec.left else None
        self.resumption = spec.choose("resumption", resumptions if self.alpn else ["none"], "none")
        timeouts = spec.inner("timeouts")
        self.connect_ns, self.request_ns = timeouts.count("connect_ns"), timeouts.count("request_ns")
        timeouts.end()
        self.seed = spec.take("seed")
        self.recording = spec.choose("recording", ["samples", "histograms"])
        self.results = spec.take("results")
        self.qlog_dir = spec.take("qlog_dir", None)
        if self.qlog_dir is not None and not (logs_quic and self.protocol in ("quic", "h3")):
            raise Unsupported(f"spec: `qlog_dir`: this library writes no qlog of {self.protocol}")
        spec.choose("threads", [1], 1)  # one event loop
        self.transport = Fields(spec.take("transport", {}), "transport")
        drop_nulls(self.transport)
        spec.end()  # a remaining field would be ignored, so it is unsupported

    def read_tls(self, spec):
        if (self.alpn is not None) != ("tls" in spec.left):
            raise Failure("other", "spec: `tls` must be present exactly where the protocol has TLS, "
                                   f"and the protocol is {self.protocol}")
        if self.alpn is None:
            return None
        tls = spec.inner("tls")
        drop_nulls(tls)
        return tls

    def read_request(self, request):
        drop_nulls(request)
        self.method, self.path = request.take("method"), request.take("path")
        self.body = pattern(request.count("body_size", least=0))
        self.headers = [(name.lower(), value) for name, value in request.take("headers", [])]
        if self.body or self.method in ("POST", "PUT", "PATCH"):
            self.headers.insert(0, ("content-length", str(len(self.body))))
        self.expect = request.take("expect", None)
        request.end()

    def read_connections(self, policy):
        self.persistent = policy.choose("policy", ["per_request", "persistent"]) == "persistent"
        self.connections, self.streams = 0, 1
        if self.persistent:
            self.connections, self.streams = policy.count("connections"), policy.count("streams")
            if self.streams > 1 and not self.multiplexes:
                raise Unsupported(f"connections: `streams` = {self.streams}: {self.protocol} has one request at a time")
        policy.end()

    def read_schedule(self, schedule):
        self.loop = schedule.choose("loop", ["closed", "open"])
        if self.loop == "closed":
            self.workers = schedule.count("workers")
            self.pause = read_pause(Fields(schedule.take("pause", {"kind": "none"}), "schedule.pause"))
        else:
            self.rate, self.arrivals = schedule.take("rate_per_s"), schedule.choose("arrivals", ["uniform", "poisson"])
            if not isinstance(self.rate, (int, float)) or not 0 < self.rate < float("inf"):
                raise Unsupported(f"schedule: `rate_per_s` = {self.rate!r}; supported: positive numbers")
        schedule.end()


def drop_nulls(fields):
    """A null field counts as absent."""
    fields.left = {name: value for name, value in fields.left.items() if value is not None}


def read_extent(extent):
    """(requests, None) or (None, nanoseconds)."""
    requests = extent.count("requests", least=0) if "requests" in extent.left else None
    duration = extent.count("duration_ns", least=0) if requests is None else None
    extent.end()
    return requests, duration


def read_pause(pause):
    """The least and the most nanoseconds."""
    names = {"none": (), "fixed": ("ns", "ns"), "uniform": ("min_ns", "max_ns")}[
        pause.choose("kind", ["none", "fixed", "uniform"])]
    lengths = {name: pause.count(name, least=0) for name in dict.fromkeys(names)}
    pause.end()
    return tuple(lengths[name] for name in names) or (0, 0)
