"""What the transport of the connections of a period says, each read when it ends or at the end of the period."""

COUNTERS = ("packets_sent", "packets_lost", "bytes_lost", "congestion_events")


class Accounts:
    """`reading` of a connection gives fields of the contract's `transport`, or None where nothing is known."""

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
        """Begins the period: what was counted so far does not count."""
        self.ended.clear()
        self.open = {connection: connection.reading() or {} for connection in self.open}

    def report(self):
        """The contract's `transport`, or None if a connection knows nothing of it."""
        readings = self.ended + [since(connection.reading(), before) for connection, before in self.open.items()]
        return total(readings) if None not in readings else None


def since(reading, before):
    if reading is None:
        return None
    return {name: value - before.get(name, 0) if name in COUNTERS else value for name, value in reading.items()}


def total(readings):
    """One report of all connections. What one of them does not know is not known of all."""
    report = {"connections": len(readings)}
    if readings:
        for name in set.intersection(*(set(reading) for reading in readings)):
            values = [reading[name] for reading in readings]
            if name == "round_trip_ns":
                report[name] = sum(values) // len(values)
            else:
                report[name] = {"round_trip_min_ns": min, "congestion_window": max}.get(name, sum)(values)
    return report
