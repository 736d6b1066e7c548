"""Generated bodies: the byte at offset i is i mod 251."""

PERIOD = bytes(range(251))


def pattern(size):
    return (PERIOD * (size // len(PERIOD) + 1))[:size]
