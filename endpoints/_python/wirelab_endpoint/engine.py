"""The load generator: sends requests by a schedule and keeps a record of each. It knows no protocol.

The library's part is a driver:

    configured()     the active settings; after the check request with the negotiated values
    tickets          the number of session tickets in store
    await open(record)   a connection that can send; notes `connected`, `handshaken`, `handshake` in the record
    finish()         writes the remaining data, after the window

and its connections:

    is_open          whether another request may be sent on it
    await request(record, chunks)   notes the rest, up to `last_byte`; `chunks`, where not None, gets the body
    await close()    never fails; waits for a session ticket if one is wanted
    reading()        its transport's counts, or None

Both raise `Failure`; a passed deadline may cancel them.
"""

import asyncio
import hashlib
import itertools

from wirelab_endpoint.accounts import Accounts
from wirelab_endpoint.contract import Failure
from wirelab_endpoint.pool import Link, Pool
from wirelab_endpoint.record import Record, judge, now
from wirelab_endpoint.schedule import Limit, arrivals, randomness

TICKETS_FOR_OPEN_LOOP = 64  # tickets to store if the number of open connections is unknown


class Client:
    def __init__(self, job, driver):
        self.job, self.driver = job, driver
        self.numbers, self.accounts, self.pool = itertools.count(), Accounts(), Pool(job)
        self.records, self.first_failure = [], None

    async def check(self):
        """One request on a connection of its own, whose digest is checked."""
        job, chunks = self.job, []
        attempt = f"the check request ({job.method} {job.path} by {job.protocol} to {job.address} port {job.port})"
        try:
            await self.once(chunks)
        except Failure as failure:
            raise Failure(failure.kind, f"{attempt}: {failure}") from failure
        digest = hashlib.sha256(b"".join(chunks)).hexdigest()
        if job.expect and digest != job.expect["sha256"].lower():
            raise Failure("digest", f"{attempt}: the body's SHA-256 is {digest}, not {job.expect['sha256']}")

    async def once(self, chunks=None):
        """One request that is not recorded, on a connection that is opened and closed for it."""
        link, record = Link(), Record(now(), now())
        try:
            await self.attempt(link, record, chunks)
        finally:
            await self.close(link)

    async def fill_ticket_store(self):
        """Opens and closes connections until the store has a ticket for each simultaneous connection."""
        job = self.job
        if job.resumption == "none":
            return
        wanted = job.connections or (job.workers if job.loop == "closed" else TICKETS_FOR_OPEN_LOOP)
        while (before := self.driver.tickets) < wanted:
            await self.once()
            if self.driver.tickets <= before:
                break  # the server gives none, or one for each used one

    async def open_persistent(self):
        self.numbers = itertools.count()
        for link in self.pool.links:
            record = Record(now(), now())
            await self.connect(link, record, record.start + self.job.connect_ns)

    def begin(self):
        """Records requests from now on."""
        self.records, self.first_failure = [], None
        if not self.job.persistent:
            self.numbers = itertools.count()
        self.accounts.begin()

    async def send(self, phase, extent, start):
        """Sends the requests of a phase and returns when none is in flight."""
        limit, timer = Limit(extent, start), None
        async with asyncio.TaskGroup() as group:
            if self.job.loop == "open":
                timer = await self.dispatch(phase, limit, start, group)
            else:
                for user in range(self.job.workers):
                    group.create_task(self.work(phase, limit, start, user))
        if timer:
            timer.cancel()

    async def work(self, phase, limit, start, user):
        """One worker of a closed loop."""
        pauses = None if self.job.pause == (0, 0) else randomness(self.job, phase, user)
        intended = start
        while True:
            await until(intended)
            lane = await self.pool.take()
            if not limit.take(max(now(), intended)):
                self.pool.put(lane)
                return
            end = await self.perform(lane, intended)
            self.pool.put(lane)
            # Without a pause, the intended start is the moment when the worker is free, which is now.
            intended = end + pauses.randint(*self.job.pause) if pauses else now()

    async def dispatch(self, phase, limit, start, group):
        """Starts a request at each arrival, independent of the earlier ones.

        If no connection is free, it waits in line, but not longer than the request time-out
        after the last arrival; then it fails.
        """
        for arrival in arrivals(self.job, phase):
            if not limit.take(start + arrival):
                break
            if not await until(start + arrival):
                await asyncio.sleep(0)  # even if late, because responses must be read
            group.create_task(self.carry(start + arrival))
        latest_start = max(now(), start) + self.job.request_ns
        return asyncio.get_running_loop().call_at(latest_start / 1e9, self.pool.end_waiting)

    async def carry(self, arrival):
        lane = await self.pool.take()
        if lane is None:
            record = Record(arrival, now())
            record.fail("timeout", "no connection became free for it")
            self.keep(record)
            return
        await self.perform(lane, arrival)
        self.pool.put(lane)

    async def perform(self, link, intended):
        """Sends one request and records it. Returns the end."""
        start = now()
        record = Record(min(intended, start), start)
        try:
            await self.attempt(link, record)
        except Failure as failure:
            record.fail(failure.kind, str(failure))
        self.keep(record)
        broken = record.error and not (self.job.multiplexes and link.connection and link.connection.is_open)
        if broken or not self.job.persistent:  # closing is not part of the request's time
            await self.close(link)
        return record.last_byte

    async def attempt(self, link, record, chunks=None):
        job, by = self.job, record.start + self.job.request_ns
        try:
            async with asyncio.timeout_at(by / 1e9):
                connection = link.connection
                if connection is None or not connection.is_open:
                    connection = await self.connect(link, record, by)
                record.connection = link.number
                await connection.request(record, chunks)
        except TimeoutError as error:
            raise Failure("timeout", f"the request was not answered within {job.request_ns} ns") from error
        judge(record, job.expect)

    async def connect(self, link, record, by):
        async with link.lock:
            if link.connection is not None:
                if link.connection.is_open:
                    return link.connection  # another lane opened it meanwhile
                await self.close(link)
            link.number = record.connection = next(self.numbers)
            limit = min(by, record.start + self.job.connect_ns)
            try:
                async with asyncio.timeout_at(limit / 1e9):
                    link.connection = await self.driver.open(record)
            except TimeoutError as error:
                raise Failure("timeout", f"connecting took longer than {self.job.connect_ns} ns") from error
            self.accounts.enter(link.connection)
            return link.connection

    async def close(self, link):
        if connection := link.connection:
            link.connection = None
            self.accounts.leave(connection)
            await connection.close()

    def keep(self, record):
        self.records.append(record.kept())
        if record.error and self.first_failure is None:
            self.first_failure = f"{record.error}: {record.message}"


async def until(moment):
    """Returns at that moment; false: it has passed already."""
    left = moment - now()
    if left <= 0:
        return False
    await asyncio.sleep(left / 1e9)
    return True
