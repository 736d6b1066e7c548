package wirelab.contract;

import com.google.gson.JsonElement;
import java.net.InetAddress;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Set;

/** A server's spec. The fields that only a library can honour remain, for the library to take. */
public final class ServerSpec {
    public final Protocol protocol;
    public final InetAddress address;
    public final int port;
    public final Set<String> features = new HashSet<>();
    /** Whether wirelab will ask for the number of answered requests. */
    public final boolean counts;
    /** Null without documents. */
    public final Path documentRoot;
    /** Certificate chain and key, PEM; null in clear text. */
    public final Path certificate;
    public final Path key;
    public final boolean resumption;
    public final boolean earlyData;
    /** For the library: `qlog_dir`, `threads`. */
    public final Fields rest;
    /** For the library: `key_log`. */
    public final Fields tls;
    /** For the library: all of it. */
    public final Fields transport;

    public ServerSpec(Fields spec, Role role) throws Failure {
        protocol = role.protocol(spec);
        address = Address.of(spec.text("address"));
        port = (int) spec.count("port", 0);
        spec.text("server_name");
        tls = Tls.take(spec, protocol);
        boolean secure = protocol.isSecure();
        certificate = secure ? Path.of(tls.text("certificate")) : null;
        key = secure ? Path.of(tls.text("key")) : null;
        resumption = secure && tls.flag("resumption");
        earlyData = secure && tls.flag("early_data");
        counts = spec.has("counts") && spec.flag("counts");
        String root = spec.textOrNull("document_root");
        documentRoot = root == null ? null : Path.of(root);
        for (JsonElement feature : spec.list("features")) {
            String name = feature.getAsString();
            if (!role.features().contains(name)) {
                throw new Unsupported("features: `" + name + "`; supported: " + String.join(", ", role.features()));
            }
            features.add(name);
        }
        transport = spec.innerOrEmpty("transport");
        rest = spec;
    }

    /** A remaining field would be ignored, so it is unsupported. */
    public void end() {
        tls.end();
        transport.end();
        rest.end();
    }
}
