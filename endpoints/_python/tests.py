"""Tests of the package that endpoints in Python share: `python3 -m unittest tests`. The contract suite tests the rest."""

import asyncio
import base64
import itertools
import random
import struct
import unittest

from wirelab_endpoint import hdr, results
from wirelab_endpoint.accounts import Accounts
from wirelab_endpoint.contract import Failure, Fields, Unsupported
from wirelab_endpoint.engine import Client
from wirelab_endpoint.job import Job
from wirelab_endpoint.precise_loop import run
from wirelab_endpoint.record import now
from wirelab_endpoint.schedule import Limit, arrivals


def spec(**changes):
    fields = {
        "protocol": "h2c", "address": "127.0.0.1", "port": 1, "server_name": "test",
        "request": {"method": "GET", "path": "/", "body_size": 0, "expect": {"status": 200, "body_size": 3, "sha256": ""}},
        "connections": {"policy": "persistent", "connections": 2, "streams": 2},
        "schedule": {"loop": "closed", "workers": 4}, "extent": {"requests": 20},
        "timeouts": {"connect_ns": 10**9, "request_ns": 10**9}, "seed": 7, "recording": "samples", "results": "unused"}
    return Job(Fields({**fields, **changes}, "spec"), ["h1c", "h2c"], ["none"])


class FakeDriver:
    """Connections that answer at once, but for the requests whose numbers are in `troubles`."""

    tickets = 0

    def __init__(self, **troubles):
        self.troubles, self.requests, self.opened = troubles, itertools.count(), 0

    async def open(self, record):
        self.opened += 1
        record.connected = now()
        return FakeConnection(self)


class FakeConnection:
    def __init__(self, driver):
        self.driver, self.is_open, self.under_way, self.most = driver, True, 0, 0

    async def request(self, record, chunks=None):
        trouble = self.driver.troubles.get(f"request_{next(self.driver.requests)}")
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(0)
            if trouble == "breaks":
                self.is_open = False
                raise Failure("reset", "as the test wants it")
            if trouble == "hangs":
                await asyncio.Event().wait()
            record.first_byte, record.status, record.bytes_in = now(), 200, 2 if trouble == "short" else 3
            record.last_byte = now()
        finally:
            self.under_way -= 1

    def reading(self):
        return {"packets_sent": 1}

    async def close(self):
        self.is_open = False


def perform(job, driver):
    """The client after its window, and the begin of the window."""
    async def window():
        client = Client(job, driver)
        await client.open_persistent()
        client.begin()
        zero = now()
        await client.send("window", job.extent, zero)
        return client, zero

    return run(window())


def samples(job, driver):
    client, zero = perform(job, driver)
    return [results.sample(kept, zero) for kept in client.records]


class Engine(unittest.TestCase):
    def test_every_request_of_a_closed_loop_has_a_record_on_a_kept_connection(self):
        driver = FakeDriver()
        found = samples(spec(), driver)
        self.assertEqual((len(found), driver.opened, {one["connection"] for one in found}), (20, 2, {0, 1}))
        self.assertFalse([one for one in found if "connected_ns" in one or "error" in one])

    def test_no_more_requests_share_a_connection_than_it_has_streams(self):
        client, _ = perform(spec(schedule={"loop": "closed", "workers": 9}), FakeDriver())
        self.assertEqual([link.connection.most for link in client.pool.links], [2, 2])

    def test_a_connection_for_every_request_is_closed_after_it(self):
        driver = FakeDriver()
        found = samples(spec(connections={"policy": "per_request"}), driver)
        self.assertEqual(sorted(one["connection"] for one in found), list(range(20)))
        self.assertTrue(all("connected_ns" in one for one in found))

    def test_a_broken_connection_is_replaced_by_the_next_request_which_records_its_times(self):
        job = spec(protocol="h1c", connections={"policy": "persistent", "connections": 1, "streams": 1},
                   schedule={"loop": "closed", "workers": 1}, extent={"requests": 4})
        found = samples(job, FakeDriver(request_1="breaks"))
        self.assertEqual([one.get("error") for one in found], [None, "reset", None, None])
        self.assertEqual(["connected_ns" in one for one in found], [False, False, True, False])
        self.assertEqual([one["connection"] for one in found], [0, 0, 1, 1])

    def test_a_passed_deadline_is_a_timeout_and_does_not_end_what_shares_the_connection(self):
        job = spec(timeouts={"connect_ns": 10**9, "request_ns": 10**7}, extent={"requests": 8})
        driver = FakeDriver(request_2="hangs")
        found = samples(job, driver)
        self.assertEqual(sorted(one.get("error", "") for one in found), [""] * 7 + ["timeout"])
        self.assertEqual(driver.opened, 2)

    def test_a_body_that_is_too_short_is_truncated(self):
        found = samples(spec(extent={"requests": 3}), FakeDriver(request_1="short"))
        self.assertEqual(results.count(one.get("error") for one in found), {"truncated": 1})

    def test_arrivals_that_get_no_connection_in_time_have_failed_and_are_recorded(self):
        job = spec(protocol="h1c", connections={"policy": "persistent", "connections": 1, "streams": 1},
                   schedule={"loop": "open", "rate_per_s": 1e5, "arrivals": "uniform"}, extent={"requests": 5},
                   timeouts={"connect_ns": 10**9, "request_ns": 10**7})
        found = samples(job, FakeDriver(**{f"request_{number}": "hangs" for number in range(5)}))
        self.assertEqual([one["error"] for one in found], ["timeout"] * 5)
        self.assertEqual(sorted(one["intended_ns"] for one in found), [0, 10_000, 20_000, 30_000, 40_000])

    def test_a_pause_lies_between_a_response_and_the_next_intended_start(self):
        job = spec(schedule={"loop": "closed", "workers": 1, "pause": {"kind": "fixed", "ns": 1_500_000}},
                   extent={"requests": 3})
        found = samples(job, FakeDriver())
        for one, next_one in zip(found, found[1:]):
            self.assertEqual(next_one["intended_ns"], one["last_byte_ns"] + 1_500_000)


class Schedule(unittest.TestCase):
    def test_poisson_arrivals_follow_from_the_seed_and_have_the_rate(self):
        job = spec(schedule={"loop": "open", "rate_per_s": 1000, "arrivals": "poisson"})
        first, again = (list(itertools.islice(arrivals(job, "window"), 20_000)) for _ in range(2))
        other = list(itertools.islice(arrivals(job, "warm-up"), 20_000))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)
        gaps = [b - a for a, b in zip(first, first[1:])]
        mean = sum(gaps) / len(gaps)
        variance = sum((gap - mean) ** 2 for gap in gaps) / len(gaps)
        # An exponential distribution's variance is the square of its mean. Standard errors here: 0.007 and 0.02.
        self.assertAlmostEqual(mean / 1e6, 1, delta=0.03)
        self.assertAlmostEqual(variance / 1e12, 1, delta=0.1)

    def test_limits_end_by_number_or_by_time(self):
        limit = Limit((2, None), 0)
        self.assertEqual([limit.take(0) for _ in range(4)], [True, True, False, False])
        limit = Limit((None, 10), 5)
        self.assertEqual([limit.take(at) for at in (5, 14, 15)], [True, True, False])


class Specs(unittest.TestCase):
    def test_what_is_unknown_is_unsupported(self):
        for changes in ({"x-unknown": 1}, {"resumption": "resume"}, {"threads": 2}, {"qlog_dir": "/"},
                        {"protocol": "h1c"}, {"schedule": {"loop": "open", "rate_per_s": 0, "arrivals": "uniform"}}):
            with self.assertRaises(Unsupported, msg=changes):
                spec(**changes)

    def test_nulls_are_as_good_as_absent(self):
        self.assertIsNone(spec(warm_up=None, tls=None, qlog_dir=None, threads=None, transport=None).warm_up)


class Histograms(unittest.TestCase):
    def test_the_encoding_holds_every_value_within_its_precision(self):
        source = random.Random(1)
        values = [int(source.lognormvariate(13, 3)) for _ in range(5000)] + [0, 1, 2047, 2048, 5 * hdr.HIGHEST]
        encoded = hdr.histogram(values)
        decoded = list(decode(base64.b64decode(encoded["v2"])))
        self.assertEqual(len(decoded), len(values))
        for exact, (low, high) in zip(sorted(values), decoded):
            self.assertTrue(low <= exact <= high, (low, exact, high))
            self.assertLessEqual(high - low, exact / 1000)

    def test_the_contract_s_example_is_read_back(self):
        example = "HISTEwAAAAsAAAAAAAAAAwAAAAAAAAABAAADRjC4oAA/8AAAAAAAAOkhAi8CjVcCqxgC"  # `lag`: 2282 to 290275
        decoded = list(decode(base64.b64decode(example)))
        self.assertEqual(len(decoded), 4)
        self.assertTrue(decoded[0][0] <= 2282 <= decoded[0][1] and decoded[-1][0] <= 290275 <= decoded[-1][1])


def decode(data):
    """The lowest and the highest value that each counted value may have been."""
    cookie, length, _, digits, least, _, _ = struct.unpack_from(">iiiiqqd", data)
    assert (cookie, digits, least, length) == (hdr.COOKIE, 3, 1, len(data) - 40)
    at, position = 0, 40
    while position < len(data):
        number = shift = 0
        while True:
            byte = data[position]
            position, number, shift = position + 1, number | (byte & 127) << shift, shift + 7
            if byte < 128:
                break
        number = number >> 1 ^ -(number & 1)
        if number <= 0:
            at += -number or 1
            continue
        bucket = max((at >> 10) - 1, 0)
        low = (at - (bucket << 10)) << bucket
        yield from [(low, low + (1 << bucket) - 1)] * number
        at += 1


class Transport(unittest.TestCase):
    def test_counters_count_from_the_beginning_of_the_period(self):
        class Connection:
            def __init__(self, **reading):
                self.reading = lambda: reading

        accounts, kept, late = Accounts(), Connection(packets_sent=5, congestion_window=7), Connection(packets_sent=2)
        accounts.enter(kept)
        accounts.begin()
        accounts.enter(late)
        accounts.leave(late)
        self.assertEqual(accounts.report(), {"connections": 2, "packets_sent": 2})


if __name__ == "__main__":
    unittest.main()
