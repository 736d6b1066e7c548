#!/usr/bin/env python3
"""Measures what the machine adds to the known delays of wirelab's server: `floor.py WIRELAB` prints a table.

The client is a blocking socket, without an event loop or a protocol. The kernel's time stamp of the response separates
its way to this process (the wake-up) from the server and the two ways through the kernel. A client that never sleeps
has no wake-up, and keeps its processor warm. Figures are medians in microseconds, in excess of the delay.
"""

import json
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

DELAYS_MS = (0, 1, 10, 100)
REQUESTS = 60
STAMP = struct.Struct("@ll")
SPEC = {
    "contract": 1,
    "protocol": "tcp",
    "address": "127.0.0.1",
    "port": 0,
    "server_name": "server.wirelab.test",
    "features": ["delay"],
    "transport": {},
}


def exchange(connection, delay_ms, spins):
    """One request: the microseconds until the kernel had the response, or `None`, and until this process had it."""
    header = struct.pack(">QQQ", 1, 0, delay_ms * 1000)  # size of the response, of the body, delay: see raw.rs
    connection.setblocking(not spins)
    began, began_real = time.perf_counter_ns(), time.clock_gettime_ns(time.CLOCK_REALTIME)
    connection.send(header)
    while True:
        try:
            response, stamps, _, _ = connection.recvmsg(1, socket.CMSG_SPACE(STAMP.size))
            break
        except BlockingIOError:
            pass
    ended = time.perf_counter_ns()
    if not response:
        sys.exit("the server closed the connection")
    user_us = (ended - began) / 1e3
    if not stamps:
        return None, user_us
    seconds, nanoseconds = STAMP.unpack(stamps[0][2])
    return (seconds * 10**9 + nanoseconds - began_real) / 1e3, user_us


def errors(port, spins):
    """For each delay, the medians of both times in excess of it."""
    so_timestampns = getattr(socket, "SO_TIMESTAMPNS", 35)  # socket(7); older versions of Python lack the name
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, so_timestampns, 1)
        # The kernel begins to take time stamps some time after the first socket asks for them.
        if not any(exchange(connection, 1, spins)[0] for _ in range(1000)):
            sys.exit("this kernel takes no time stamps of data that arrive (SO_TIMESTAMPNS)")
        for delay in DELAYS_MS:
            times = [exchange(connection, delay, spins) for _ in range(REQUESTS)]
            yield [statistics.median(column) - delay * 1e3 for column in zip(*times)]


def clock_us():
    """The median cost of a reading of the clock."""
    readings = [time.perf_counter_ns() for _ in range(10_000)]
    return statistics.median(after - before for before, after in zip(readings, readings[1:])) / 1e3


def row(name, figures):
    print(f"| {name} | " + " | ".join(f"{figure:.0f}" for figure in figures) + " |")


def main():
    with tempfile.NamedTemporaryFile("w", suffix=".json") as spec:
        json.dump(SPEC, spec)
        spec.flush()
        command = [sys.argv[1], "endpoint", "server", "--spec", spec.name]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            port = json.loads(server.stdout.readline())["port"]
            sleeping = list(errors(port, spins=False))
            spinning = list(errors(port, spins=True))
        finally:
            server.stdin.close()
            server.wait(10)
    print("\n| blocking socket, `tcp` | " + " | ".join(f"{delay} ms" for delay in DELAYS_MS) + " |")
    print("|---|" + "---|" * len(DELAYS_MS))
    row("until the process has the response", [user for _, user in sleeping])
    row("until the kernel has the response", [kernel for kernel, _ in sleeping])
    row("the difference: wake-up of the client", [user - kernel for kernel, user in sleeping])
    row("a client that never sleeps, until the process has the response", [user for _, user in spinning])
    row("a client that never sleeps, until the kernel has the response", [kernel for kernel, _ in spinning])
    print(f"\nA reading of the clock costs {clock_us():.2f} us, the loop around it included.")


if __name__ == "__main__":
    main()
