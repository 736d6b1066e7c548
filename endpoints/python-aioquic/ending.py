"""Why a connection ended."""

from aioquic.h3.connection import ErrorCode
from aioquic.quic.packet import QuicErrorCode
from aioquic.tls import AlertDescription

from wirelab_endpoint.contract import Failure

CERTIFICATE_ALERTS = {
    AlertDescription.bad_certificate, AlertDescription.unsupported_certificate, AlertDescription.certificate_revoked,
    AlertDescription.certificate_expired, AlertDescription.certificate_unknown, AlertDescription.unknown_ca}


def why(end):
    """The end of a connection as a failure."""
    code, words = end.error_code, f"the connection ended with code {end.error_code:#x}: {end.reason_phrase or 'no reason'}"
    if end.frame_type is None:  # by the application
        if code == ErrorCode.H3_MESSAGE_ERROR and "content-length" in end.reason_phrase:
            return Failure("truncated", words)
        return Failure("reset" if code in (0, ErrorCode.H3_NO_ERROR) else "protocol", words)
    if code == QuicErrorCode.CRYPTO_ERROR + AlertDescription.no_application_protocol:
        return Failure("protocol", words)
    if QuicErrorCode.CRYPTO_ERROR <= code < QuicErrorCode.CRYPTO_ERROR + 0x100:
        alert = code - QuicErrorCode.CRYPTO_ERROR
        return Failure("certificate" if alert in CERTIFICATE_ALERTS else "tls", words)
    if code == QuicErrorCode.INTERNAL_ERROR and end.reason_phrase == "Idle timeout":
        return Failure("timeout", words)
    return Failure("reset" if code == QuicErrorCode.NO_ERROR else "protocol", words)
