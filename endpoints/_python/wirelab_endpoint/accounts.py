"""The transport's counts for the connections of a period, each read at its end or at the end of the period."""

COUNTERS = ("packets_sent", "packets_lost", "bytes_lost", "congestion_events")


class Accounts:
    """`reading` of a connection returns fields of the contract's `transport`, or None if nothing is known."""

    def __init__(self):
        self.open, self.ended = {}, []

    def enter(self, connection):
        self.open[connection] = {}

    def leave(self, connection):
        """Reads a connection that is about to be closed."""
        before = self.open.pop(connection, None)
        if before is not None:
            self.ended.append(since(connection.reading(), before))

    def begin(self):
        """Begins the period: earlier counts are left out."""
        self.ended.clear()
        self.open = {connection: connection.reading() or {} for connection in self.open}

    def report(self):
        """The contract's `transport`, or None if a connection has no counts."""
        readings = self.ended + [since(connection.reading(), before) for connection, before in self.open.items()]
        return total(readings) if None not in readings else None


def since(reading, before):
    if reading is None:
        return None
    return {name: value - before.get(name, 0) if name in COUNTERS else value for name, value in reading.items()}


def total(readings):
    """One report of all connections. It leaves out a value that one of them does not know."""
    report = {"connections": len(readings)}
    if readings:
        for name in set.intersection(*(set(reading) for reading in readings)):
            values = [reading[name] for reading in readings]
            if name == "round_trip_ns":
                report[name] = sum(values) // len(values)
            else:
                report[name] = {"round_trip_min_ns": min, "congestion_window": max}.get(name, sum)(values)
    return report
