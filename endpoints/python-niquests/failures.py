"""Exceptions of niquests, as the contract's kinds of errors."""

import re
import ssl

from niquests.exceptions import RequestException
from niquests.packages.urllib3.exceptions import HTTPError

from wirelab_endpoint.contract import Failure
from wirelab_endpoint.failure import kind_of

WORDS = [  # in messages, where no exception below says more
    ("certificate", r"certificate|hostname|unknown ca|UnknownIssuer|self.signed"),
    ("reset", r"was reset|reset by peer"),
    ("truncated", r"IncompleteRead|without sending complete|closed connection|EOF|terminated"),
    ("tls", r"SSLError|TLS|alert"),
]


def meant(error):
    """The original of an error that urllib3-future replaced by a reset, as every OSError while reading; else the error."""
    cause = error
    while cause is not None:
        if isinstance(cause, ConnectionResetError) and not cause.args and cause.__cause__ is not None:
            return cause.__cause__
        cause = cause.__cause__ or cause.__context__
    return error


def classify(error, attempt, connection, otherwise="protocol"):
    words = f"{type(error).__name__}: {error}"
    trouble = kind_of(meant(connection.trouble)) if connection is not None else None
    kind = trouble or kind_of(meant(error))
    if not isinstance(error, (OSError, ssl.SSLError, RequestException, HTTPError)):
        kind = "other"  # a bug
    elif kind is None:
        kind = next((kind for kind, pattern in WORDS if re.search(pattern, words, re.IGNORECASE)), otherwise)
    return Failure(kind, f"{attempt}: {words}")
