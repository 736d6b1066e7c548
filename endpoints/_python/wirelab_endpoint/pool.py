"""Lanes: each carries one request at a time, over a connection (or a stream's worth of one)."""

import asyncio
from collections import deque


class Link:
    """A connection, which is replaced when it broke, and its number. Several lanes share one that multiplexes."""

    __slots__ = ("connection", "number", "lock")

    def __init__(self):
        self.connection, self.number = None, 0
        self.lock = asyncio.Lock()  # held by the lane that connects, while the others wait for it


class Pool:
    """Whoever has a request to send takes a lane, and waits in line where all are taken."""

    def __init__(self, job):
        self.links = [Link() for _ in range(job.connections)]
        # Successive lanes belong to different connections, so that requests are spread over all of them.
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
        """Those that still wait get no lane."""
        while self.waiting:
            self.waiting.popleft().set_result(None)
