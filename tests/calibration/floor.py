#!/usr/bin/env python3
"""Measures how much the machine itself adds to a known delay: one line for docs/calibration.md, in microseconds.

Two processes with blocking sockets over loopback; the server sleeps and answers one byte. No event loop, no protocol.
The addition to the delay consists of the kernel's timer, two wake-ups of sleeping processors, and cold caches.
"""

import os
import socket
import statistics
import time

DELAYS_MS = (0, 1, 10, 100)
REQUESTS = 60


def serve(listener):
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while request := connection.recv(64):
        if delay := int(request):
            time.sleep(delay / 1000)  # the known delay itself
        connection.send(b"x")


def error_us(connection, delay):
    began = time.perf_counter_ns()
    connection.send(b"%d" % delay)
    connection.recv(1)
    return (time.perf_counter_ns() - began) / 1e3 - delay * 1e3


def main():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        child = os.fork()
        if child == 0:
            serve(listener)
            os._exit(0)
        with socket.create_connection(listener.getsockname()) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            errors = [statistics.median(error_us(connection, delay) for _ in range(REQUESTS)) for delay in DELAYS_MS]
        os.waitpid(child, 0)
    print("| sequential | none (blocking sockets, Python) | " + " | ".join(f"{error:.0f}" for error in errors) + " |")


if __name__ == "__main__":
    main()
