package wirelab.contract;

/** The `tls` object of a spec: present exactly if the protocol has TLS. */
final class Tls {
    private Tls() {
    }

    static Fields take(Fields spec, Protocol protocol) throws Failure {
        if (spec.has("tls") != protocol.isSecure()) {
            throw new Failure(ErrorKind.OTHER,
                "spec: `tls` must be present exactly where the protocol has TLS, not for " + protocol.token());
        }
        return spec.innerOrEmpty("tls");
    }
}
