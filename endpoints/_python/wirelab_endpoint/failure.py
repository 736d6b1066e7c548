"""Exceptions of sockets and of TLS, as the contract's kinds of errors."""

import errno
import ssl

from wirelab_endpoint.contract import Failure

UNREACHABLE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ETIMEDOUT)


def kind_of(error):
    """The kind of an exception or of its causes, or None if their classes do not decide."""
    while error is not None:
        if isinstance(error, Failure):
            return error.kind
        if isinstance(error, ssl.SSLCertVerificationError):
            return "certificate"
        if isinstance(error, ssl.SSLError):
            return "truncated" if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)) else "tls"
        if isinstance(error, ConnectionRefusedError):
            return "refused"
        if isinstance(error, (ConnectionResetError, BrokenPipeError)):
            return "reset"
        if isinstance(error, OSError) and error.errno in UNREACHABLE:
            return "unreachable"
        error = error.__cause__ or error.__context__
    return None
