"""Exceptions of httpx and httpcore, as the contract's kinds of errors."""

import ssl

import h2.events
import httpcore
import httpx

from wirelab_endpoint.contract import Failure
from wirelab_endpoint.failure import kind_of

TRUNCATED = ("disconnected", "closed connection", "incomplete")  # in messages, where no exception below says more


def classify(error, attempt):
    words = f"{attempt}: {type(error).__name__}: {error}"
    if (kind := kind_of(error)) is not None:
        return Failure(kind, words)
    if not isinstance(error, (httpx.TransportError, httpcore.NetworkError, httpcore.ProtocolError, OSError, ssl.SSLError)):
        return Failure("other", words)  # a bug
    if any(isinstance(one, (h2.events.StreamReset, h2.events.ConnectionTerminated)) for one in arguments(error)):
        return Failure("reset", words)
    return Failure("truncated" if any(word in str(error).lower() for word in TRUNCATED) else "protocol", words)


def arguments(error):
    """The messages of the exception and of its causes."""
    while error is not None:
        yield from error.args
        error = error.__cause__ or error.__context__
