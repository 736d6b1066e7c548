"""HdrHistogram's V2 encoding (github.com/HdrHistogram): three significant digits, values from 1 on, not deflated."""

import base64
import struct

COOKIE = 0x1C849303 | 0x10
DIGITS = 3
SUB_BUCKETS = 2048  # the least power of two that distinguishes 2 * 10**DIGITS values
HALF_BITS = 10  # of half of them
HIGHEST = 3_600_000_000_000  # nanoseconds in an hour; more where a value is larger


def index(value):
    """The number of the value's counter."""
    bucket = (value | SUB_BUCKETS - 1).bit_length() - HALF_BITS - 1
    return (bucket + 1 << HALF_BITS) + (value >> bucket) - (1 << HALF_BITS)


def zigzag(number):
    """ZigZag LEB128 of a signed number of less than 56 bits: seven bits per byte, the lowest first."""
    number = number << 1 ^ number >> 63
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def counters(values):
    """The counters up to the largest value's; a run of zeros is its negative length."""
    counts = {}
    for value in values:
        at = index(value)
        counts[at] = counts.get(at, 0) + 1
    encoded, expected = bytearray(), 0
    for at in sorted(counts):
        if zeros := at - expected:
            encoded += zigzag(-zeros if zeros > 1 else 0)
        encoded += zigzag(counts[at])
        expected = at + 1
    return bytes(encoded)


def histogram(values):
    """One histogram of the contract, with the exact values that quantisation loses."""
    if not values:
        return {"v2": "", "count": 0, "min_ns": 0, "max_ns": 0, "sum_ns": 0}
    payload = counters(values)
    head = struct.pack(">iiiiqqd", COOKIE, len(payload), 0, DIGITS, 1, max(HIGHEST, max(values)), 1.0)
    return {"v2": base64.b64encode(head + payload).decode(), "count": len(values), "min_ns": min(values),
            "max_ns": max(values), "sum_ns": sum(values)}
