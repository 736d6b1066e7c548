"""The start times of requests: nothing here depends on responses."""

import random


class Limit:
    """The number of requests that may still start, or the latest start."""

    def __init__(self, extent, start):
        self.left, duration = extent
        self.end = None if duration is None else start + duration

    def take(self, at):
        """Takes one request that starts at `at`; false: none is left."""
        if self.left is None:
            return at < self.end
        self.left -= 1
        return self.left >= 0


def randomness(job, phase, user):
    """The generator of one worker, or of the arrivals, in one phase: each has numbers of its own."""
    return random.Random(f"{job.seed}/{phase}/{user}")


def arrivals(job, phase):
    """The arrival times of an open loop, in nanoseconds from its start; without end."""
    interval, number = 1e9 / job.rate, 0
    if job.arrivals == "uniform":
        while True:
            yield int(number * interval)  # not by adding up: rounding errors do not accumulate
            number += 1
    source, at = randomness(job, phase, "arrivals"), 0.0
    while True:
        at += source.expovariate(1.0) * interval
        yield int(at)
