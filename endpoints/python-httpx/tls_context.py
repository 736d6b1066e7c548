"""TLS for httpcore, which knows nothing of session tickets, nor does anyio below it."""

import ssl


def make(tls, alpn, sessions):
    """TLS 1.3 only, so that no cell differs from another by its version. Each handshake takes one of `sessions`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.sslobject_class = resuming(sessions)  # anyio uses a thread for contexts of another class
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols([alpn])
    if (key_log := tls.take("key_log", None)) is not None:
        context.keylog_filename = key_log
    if (anchor := tls.take("trust_anchor", None)) is not None:
        context.load_verify_locations(anchor)
    else:
        context.load_default_certs()
    if not tls.choose("verify", [True, False]):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def resuming(sessions):
    class Resuming(ssl.SSLObject):
        has_begun = False

        def do_handshake(self):  # is called again for every flight
            if not self.has_begun:
                self.has_begun = True
                if sessions:
                    self.session = sessions.pop()
            super().do_handshake()

    return Resuming
