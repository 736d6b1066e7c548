"""The results file, written after the window."""

import json

from wirelab_endpoint import hdr
from wirelab_endpoint.record import sample


def write(path, recording, kept, zero):
    """Writes samples in the order of their intended starts, or histograms of them."""
    with open(path, "w", encoding="utf-8") as file:
        if recording == "histograms":
            json.dump(histograms([sample(record, zero) for record in kept]), file)
        else:
            for record in sorted(kept, key=lambda record: record[:2]):
                file.write(json.dumps(sample(record, zero)) + "\n")


def count_errors(kept):
    return count(record[-1] for record in kept)


def count(words):
    counts = {}
    for word in words:
        if word is not None:
            counts[word] = counts.get(word, 0) + 1
    return counts


def histograms(samples):
    good = [one for one in samples if "error" not in one]

    def between(some, begin, end):
        return hdr.histogram([one[end] - one[begin] for one in some if end in one])

    return {
        "response": between(good, "intended_ns", "last_byte_ns"),
        "service": between(good, "start_ns", "last_byte_ns"),
        "lag": between(samples, "intended_ns", "start_ns"),
        "handshake": between(good, "start_ns", "handshake_ns"),
        "first_byte": between(good, "start_ns", "first_byte_ns"),
        "failure": between([one for one in samples if "error" in one], "intended_ns", "last_byte_ns"),
        "requests": len(good),
        "errors": count(one.get("error") for one in samples),
        "bytes_in": sum(one["bytes_in"] for one in good),
        "bytes_out": sum(one["bytes_out"] for one in good),
        "connections": sum("connected_ns" in one or "handshake_ns" in one for one in samples),
        "handshakes": count(one.get("handshake") for one in samples),
    }
