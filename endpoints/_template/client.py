"""The client: CHANGE how a connection is opened and a request is sent; keep the order of steps and the records."""

import errno
import hashlib
import http.client
import json
import queue
import random
import socket
import ssl
import threading
import time

import contract
import wire
from contract import Failure, Unsupported

UNREACHABLE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ETIMEDOUT)
TCP_CLOSE = 7  # a state in TCP_INFO (Linux)
now = time.monotonic_ns


class Job:
    """The spec, with every field either understood or refused."""

    def __init__(self, spec, abilities):
        self.protocol = spec.choose("protocol", abilities["protocols"])
        self.address, self.port, self.name = spec.take("address"), spec.count("port"), spec.take("server_name")
        tls = wire.tls_fields(spec, self.protocol)
        self.tls = make_context(tls) if tls else None
        self.read_request(spec.inner("request"))
        self.read_schedule(spec)
        self.resumption = spec.choose("resumption", ["none", "resume"] if tls else ["none"], "none")
        timeouts = spec.inner("timeouts")
        self.connect_ns, self.request_ns = timeouts.count("connect_ns"), timeouts.count("request_ns")
        timeouts.end()
        self.random = random.Random(spec.take("seed"))
        spec.choose("recording", ["samples"])
        self.results = spec.take("results")
        self.settings = wire.TcpSettings(spec)
        spec.end()  # every field that is left would be ignored: unsupported

    def read_request(self, request):
        self.method, path = request.take("method"), request.take("path")
        self.body_size = request.count("body_size", least=0)
        lines = [f"{self.method} {path} HTTP/1.1", f"host: {self.name}"]
        if self.body_size or self.method in ("POST", "PUT"):
            lines.append(f"content-length: {self.body_size}")
        lines += [f"{name}: {value}" for name, value in request.take("headers", [])]
        # Made once: what is the same for every request is not part of the measurement.
        self.message = "\r\n".join(lines + ["", ""]).encode() + wire.pattern(self.body_size)
        self.expect = request.take("expect", None)
        request.end()

    def read_schedule(self, spec):
        policy = spec.inner("connections")
        persistent = policy.choose("policy", ["per_request", "persistent"]) == "persistent"
        self.connections = policy.count("connections") if persistent else 0
        if persistent:
            policy.choose("streams", [1])  # HTTP/1.1 has one request at a time on a connection
        policy.end()
        schedule = spec.inner("schedule")
        schedule.choose("loop", ["closed"])
        self.workers = schedule.count("workers")
        pause = contract.Fields(schedule.take("pause", {"kind": "none"}), "schedule.pause")
        kind = pause.choose("kind", ["none", "fixed", "uniform"])
        names = {"none": [], "fixed": ["ns", "ns"], "uniform": ["min_ns", "max_ns"]}[kind]
        lengths = {name: pause.count(name, least=0) for name in dict.fromkeys(names)}
        self.pause = tuple(lengths[name] for name in names) or (0, 0)
        pause.end()
        schedule.end()
        self.extent = read_extent(spec.inner("extent"))
        self.warm_up = read_extent(spec.inner("warm_up")) if "warm_up" in spec.left else None


def read_extent(extent):
    """(requests, None) or (None, nanoseconds)."""
    requests = extent.count("requests", least=0) if "requests" in extent.left else None
    duration = extent.count("duration_ns", least=0) if requests is None else None
    extent.end()
    return requests, duration


def make_context(tls):
    context = wire.tls_context(ssl.PROTOCOL_TLS_CLIENT, tls.take("key_log", None))
    if (anchor := tls.take("trust_anchor", None)) is not None:
        context.load_verify_locations(anchor)
    else:
        context.load_default_certs()
    if not tls.choose("verify", [True, False]):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    tls.end()
    return context


def was_reset(sock):
    """Whether the peer's RST closed it: `ssl` reports the end of the stream and a reset alike, as SSLEOFError."""
    try:
        return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == TCP_CLOSE
    except (OSError, AttributeError):
        return False


def classify(error, attempt, sock):
    """An exception as one of the contract's error kinds."""
    if isinstance(error, socket.timeout):
        kind = "timeout"
    elif isinstance(error, ssl.SSLCertVerificationError):
        kind = "certificate"
    elif isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        kind = "reset" if was_reset(sock) else "tls" if attempt == "TLS handshake" else "truncated"
    elif isinstance(error, ssl.SSLError):
        kind = "tls"
    elif isinstance(error, ConnectionRefusedError):
        kind = "refused"
    elif isinstance(error, (http.client.IncompleteRead, http.client.RemoteDisconnected)):
        kind = "truncated"
    elif isinstance(error, (ConnectionResetError, BrokenPipeError)):
        kind = "reset"
    elif isinstance(error, (http.client.HTTPException, ValueError)):
        kind = "protocol"
    elif isinstance(error, OSError) and error.errno in UNREACHABLE:
        kind = "unreachable"
    else:
        kind = "other"
    return Failure(kind, f"{attempt}: {type(error).__name__}: {error}")


class Connection:
    """CHANGE: a connection of your library. `open` and `request` note times in the sample and raise `Failure`."""

    def __init__(self, client):
        self.client, self.job, self.sock, self.number = client, client.job, None, client.next_number()

    def open(self, sample, deadline):
        job, attempt = self.job, f"connecting to {self.job.address} port {self.job.port}"
        deadline = min(deadline, now() + job.connect_ns)
        try:
            family = socket.AF_INET6 if ":" in job.address else socket.AF_INET
            self.sock = socket.socket(family, socket.SOCK_STREAM)
            job.settings.apply(self.sock)
            self.wait_until(deadline)
            self.sock.connect((job.address, job.port))
            sample["connected_ns"] = now()
            if job.tls:
                attempt = "TLS handshake"
                session = self.client.session if job.resumption == "resume" else None
                self.sock = job.tls.wrap_socket(
                    self.sock, server_hostname=job.name, session=session, do_handshake_on_connect=False,
                    suppress_ragged_eofs=False)  # an end without close-notify is not the end of the response
                self.wait_until(deadline)
                self.sock.do_handshake()
                sample["handshake_ns"] = now()
                sample["handshake"] = "resumed" if self.sock.session_reused else "full"
                if self.sock.selected_alpn_protocol() != wire.ALPN:
                    raise Failure("protocol", f"negotiated {self.sock.selected_alpn_protocol()}, not {wire.ALPN}")
        except (OSError, ValueError) as error:
            raise classify(error, attempt, self.sock) from error

    def request(self, sample, deadline):
        """Sends the request and returns the body, having checked status and size. The connection must be open."""
        job, body = self.job, bytearray()
        try:
            self.wait_until(deadline)
            self.sock.sendall(job.message)
            sample["bytes_out"] = job.body_size
            response = http.client.HTTPResponse(self.sock, method=job.method)
            if not response.fp.peek(1):  # waits for the first byte of the response
                raise http.client.RemoteDisconnected("the connection ended without a response")
            sample["first_byte_ns"] = now()
            response.begin()
            sample["status"] = response.status
            chunk = memoryview(bytearray(65536))
            while size := response.readinto(chunk):
                body += chunk[:size]
                sample["bytes_in"] = len(body)
                self.wait_until(deadline)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise classify(error, f"{job.method} on connection {self.number}", self.sock) from error
        if response.length:
            raise Failure("truncated", f"the response ended {response.length} bytes before its announced length")
        if job.expect:
            check(response.status, len(body), job.expect)
        if job.resumption == "resume":
            self.client.session = self.sock.session  # tickets came with the response
        return body

    def wait_until(self, deadline):
        left = deadline - now()
        if left <= 0:
            raise socket.timeout("the deadline passed")
        self.sock.settimeout(left / 1e9)

    def close(self):
        if isinstance(self.sock, ssl.SSLSocket):
            self.sock.settimeout(0)
            try:
                self.sock.unwrap()  # sends close-notify; the peer's is not waited for
            except (OSError, ValueError):
                pass
        if self.sock is not None:
            self.sock.close()


def check(status, size, expect):
    if status != expect["status"]:
        raise Failure("status", f"status {status}, not {expect['status']}")
    if size < expect["body_size"]:
        raise Failure("truncated", f"{size} bytes, not {expect['body_size']}")
    if size > expect["body_size"]:
        raise Failure("digest", f"{size} bytes, not {expect['body_size']}")


class Client:
    """Sends requests by the spec's schedule."""

    def __init__(self, job):
        self.job, self.session, self.opened, self.lock = job, None, 0, threading.Lock()
        self.pool = queue.Queue()  # persistent connections that are free; None stands for one yet to be opened

    def next_number(self):
        with self.lock:
            self.opened += 1
            return self.opened - 1

    def check_request(self):
        """One request on a connection of its own, whose digest is checked. It also brings the first session ticket."""
        connection, deadline = Connection(self), now() + self.job.request_ns
        connection.open({}, deadline)
        body = connection.request({}, deadline)
        digest = hashlib.sha256(body).hexdigest()
        if self.job.expect and digest != self.job.expect["sha256"].lower():
            raise Failure("digest", f"the body's SHA-256 is {digest}, not {self.job.expect['sha256']}")
        configured = self.job.settings.configured(connection.sock)
        if self.job.tls:
            configured["cipher"] = connection.sock.cipher()[0]
            configured["alpn"] = connection.sock.selected_alpn_protocol()
        connection.close()
        self.opened = 0  # the connections of the trial are numbered from 0
        return configured

    def open_persistent(self):
        for _ in range(self.job.connections):
            connection = Connection(self)
            connection.open({}, now() + self.job.request_ns)
            self.pool.put(connection)

    def run(self, extent, zero):
        """Runs the closed loop from `zero` on and returns its records; their times are absolute."""
        requests, duration = extent
        tickets = iter(range(requests)) if requests is not None else None
        end = None if duration is None else zero + duration
        samples, crashes = [], []

        def next_start():
            """The intended start of the next request; None: there is no next one."""
            with self.lock:
                if tickets and next(tickets, None) is None:
                    return None
            start = now()
            return start if end is None or start < end else None

        def work(pauses):
            try:
                while (intended := next_start()) is not None:
                    samples.append(self.one(intended))
                    if self.job.pause != (0, 0):
                        time.sleep(pauses.uniform(*self.job.pause) / 1e9)
            except BaseException as error:  # a bug: fail the trial, do not just lose a worker
                crashes.append(error)

        seeds = [self.job.random.getrandbits(64) for _ in range(self.job.workers)]
        threads = [threading.Thread(target=work, args=(random.Random(s),), daemon=True) for s in seeds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if crashes:
            raise crashes[0]
        return samples

    def one(self, intended):
        """One request, on a new connection or on one of the pool, and its record."""
        persistent = self.job.connections > 0
        connection = self.pool.get() if persistent else None
        sample = {"intended_ns": intended, "start_ns": now(), "bytes_out": 0, "bytes_in": 0}
        deadline = sample["start_ns"] + self.job.request_ns
        opens = connection is None  # a persistent connection that broke is replaced by the next request
        connection = connection or Connection(self)
        sample["connection"] = connection.number
        try:
            if opens:
                connection.open(sample, deadline)
            connection.request(sample, deadline)
            sample["last_byte_ns"] = now()
        except Failure as failure:
            sample["last_byte_ns"] = now()
            sample["error"] = failure.kind
        if not persistent or "error" in sample:  # closing is not part of the request's time
            connection.close()
        if persistent:
            self.pool.put(None if "error" in sample else connection)
        return sample


def run(spec, abilities):
    job = Job(spec, abilities)
    probe = socket.socket()
    job.settings.apply(probe)  # refuse what the kernel does not have before saying that we are ready
    configured = job.settings.configured(probe)
    probe.close()
    # Only now: that the input ends must not overtake a refusal.
    client, commands = Client(job), contract.Commands(on_stop=contract.give_up)
    contract.emit("ready", configured=configured)

    commands.expect("go")
    configured = client.check_request()
    client.open_persistent()
    if job.warm_up:
        client.run(job.warm_up, now())
    if not job.connections:
        client.opened = 0
    contract.emit("warm")

    commands.expect("go")
    zero = now()  # time zero of every record
    samples = client.run(job.extent, zero)
    window = max((s["last_byte_ns"] for s in samples), default=zero) - zero
    contract.emit("end", window_ns=window)

    commands.expect("finish")
    while not client.pool.empty():
        if connection := client.pool.get():
            connection.close()
    errors = {}
    with open(job.results, "w", encoding="utf-8") as file:
        for sample in samples:
            for name in [name for name in sample if name.endswith("_ns")]:
                sample[name] -= zero
            if error := sample.get("error"):
                errors[error] = errors.get(error, 0) + 1
            file.write(json.dumps(sample) + "\n")
    contract.emit("done", requests=len(samples) - sum(errors.values()), errors=errors, configured=configured)
