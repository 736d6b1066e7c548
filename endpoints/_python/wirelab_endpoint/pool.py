"""Lanes: each carries one request at a time, over a connection (or a stream's worth of one)."""

import asyncio
from collections import deque


class Link:
    """A connection and its number. It is replaced if it breaks, and several lanes share one that multiplexes."""

    __slots__ = ("connection", "number", "lock")

    def __init__(self):
        self.connection, self.number = None, 0
        self.lock = asyncio.Lock()  # held by the lane that connects, while the others wait for it


class Pool:
    """The lanes. A request takes one, and waits in line if all are taken."""

    def __init__(self, job):
        self.links = [Link() for _ in range(job.connections)]
        # Successive lanes belong to different connections, to spread the requests over all of them.
        self.free = deque(self.links * job.streams) if job.persistent else None
        self.waiting = deque()

    async def take(self):
        if self.free is None:
            return Link()
        if self.free:
            return self.free.popleft()
        turn = asyncio.get_running_loop().create_future()
        self.waiting.append(turn)
        return await turn

    def put(self, lane):
        if self.waiting:
            self.waiting.popleft().set_result(lane)
        elif self.free is not None:
            self.free.append(lane)

    def end_waiting(self):
        """Waiting requests get no lane."""
        while self.waiting:
            self.waiting.popleft().set_result(None)
