"""An event loop whose timers are exact: asyncio's own rounds every wait up to whole milliseconds, as epoll_wait(2) does.

An open loop's arrivals, the pauses of a closed loop and a server's `delay` would be late by up to that much.
"""

import asyncio
import select
import selectors

LONG_S = 0.02  # longer waits use epoll, up to
REST_S = 0.005  # the last part, which is exact


class PreciseSelector(selectors.EpollSelector):
    """select(2) counts microseconds, and can wait for an epoll descriptor."""

    def select(self, timeout=None):
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        if timeout > LONG_S:
            return super().select(timeout - REST_S)  # it may be too early: the loop computes the rest and asks again
        if not select.select((self.fileno(),), (), (), timeout)[0]:
            return []
        return super().select(0)


def run(main):
    """Runs a coroutine in a loop of this kind, in the only working thread."""
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(PreciseSelector())) as runner:
        return runner.run(main)
