"""OpenSSL's facts about a connection, by Python's `ssl`."""

ENCODING_DER = 2  # the value of `_ssl.ENCODING_DER`, which is private to CPython


def negotiated(tls):
    """`tls`: an SSLSocket or SSLObject after its handshake."""
    facts = {"alpn": tls.selected_alpn_protocol(), "cipher": tls.cipher()[0]}
    # Public from Python 3.13 on; before, the inner object has the method.
    chain = getattr(tls, "get_unverified_chain", None) or getattr(tls._sslobj, "get_unverified_chain", None)
    if chain and (certificates := chain()):
        facts["certificate_chain_bytes"] = sum(
            len(one if isinstance(one, bytes) else one.public_bytes(ENCODING_DER)) for one in certificates)
    return facts
