package wirelab.client;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.sun.net.httpserver.HttpServer;
import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.Base64;
import java.util.Comparator;
import java.util.stream.Stream;
import wirelab.Library;
import wirelab.contract.ClientSpec;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.contract.Fields;
import wirelab.contract.Protocol;
import wirelab.contract.Role;
import wirelab.contract.ServerSpec;
import wirelab.net.Pem;
import wirelab.net.TlsRehearsal;
import wirelab.server.Running;
import wirelab.server.Server;

/**
 * Part of the installation: server and client talk to each other once in every protocol, in one process, on loopback. The
 * JVM archives the classes that were loaded by then, and later starts take them from there (class data sharing).
 */
public final class Training {
    private static final String NAME = "rehearsal";

    private Training() {
    }

    public static void run(Library library) throws Failure, InterruptedException, IOException {
        TlsRehearsal.run();
        Path folder = Files.createTempDirectory("wirelab-training-");
        try {
            train(library, folder);
        } finally {
            remove(folder);
        }
    }

    private static void train(Library library, Path folder) throws InterruptedException, IOException {
        Role role = library.client() == null ? library.server() : library.client();
        for (Protocol protocol : role.protocols()) {
            try {
                if (library.client() == null) {
                    serve(library, protocol, folder).stop();
                } else if (library.server() != null && library.server().protocols().contains(protocol)) {
                    talk(library, protocol, folder);
                } else {
                    askTheJdk(library, protocol, folder);
                }
            } catch (Failure | RuntimeException failure) {
                // Only the archive is smaller then: the contract suite shows a library that does not work.
                System.err.println("training " + protocol.token() + ": " + failure);
            }
        }
    }

    private static void remove(Path folder) throws IOException {
        try (Stream<Path> all = Files.walk(folder)) {
            for (Path path : all.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(path);
            }
        }
    }

    private static void talk(Library library, Protocol protocol, Path folder)
        throws Failure, InterruptedException, IOException {
        Running server = serve(library, protocol, folder);
        ask(library, protocol, server.port(), folder);
        server.stop();
    }

    private static Running serve(Library library, Protocol protocol, Path folder) throws Failure, IOException {
        JsonObject json = common(protocol, 0);
        json.add("features", JsonParser.parseString(protocol.isHttp() ? "[\"bytes\"]" : "[\"echo\"]"));
        if (protocol.isSecure()) {
            json.add("tls", identity(folder));
        }
        ServerSpec spec = new ServerSpec(new Fields(json, "training"), library.server());
        return library.serve(spec, Server.site(spec));
    }

    /** For a library without a server: the JDK's server, which speaks HTTP/1.1. */
    private static void askTheJdk(Library library, Protocol protocol, Path folder)
        throws Failure, InterruptedException, IOException {
        if (protocol != Protocol.H1C && protocol != Protocol.H1) {
            return;
        }
        InetSocketAddress any = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
        HttpServer server = protocol.isSecure() ? HttpsServer.create(any, 0) : HttpServer.create(any, 0);
        if (server instanceof HttpsServer secure) {
            secure.setHttpsConfigurator(new HttpsConfigurator(TlsRehearsal.context()));
        }
        server.createContext("/", exchange -> {
            exchange.sendResponseHeaders(200, 3);
            exchange.getResponseBody().write(new byte[] {0, 1, 2});
            exchange.close();
        });
        server.start();
        ask(library, protocol, server.getAddress().getPort(), folder);
        server.stop(0);
    }

    private static void ask(Library library, Protocol protocol, int port, Path folder)
        throws Failure, InterruptedException, IOException {
        ClientSpec spec = client(library, protocol, port, folder);
        Rehearsal.run(spec);
        Engine engine = new Engine(spec, library.client(spec));
        engine.check();
        engine.open();
        engine.measure(System.nanoTime());
        engine.close();
        Results.write(engine.recorder(), false, folder.resolve("results"), 0);
    }

    private static JsonObject common(Protocol protocol, int port) {
        JsonObject json = new JsonObject();
        json.addProperty("protocol", protocol.token());
        json.addProperty("address", "127.0.0.1");
        json.addProperty("port", port);
        json.addProperty("server_name", NAME);
        return json;
    }

    private static ClientSpec client(Library library, Protocol protocol, int port, Path folder) throws Failure {
        JsonObject json = common(protocol, port);
        if (protocol.isSecure()) {
            json.add("tls", JsonParser.parseString("{\"verify\":false}"));
        }
        json.add("request", JsonParser.parseString("{\"method\":\"GET\",\"path\":\"/bytes/3\",\"body_size\":0,\"expect\":"
            + "{\"status\":200,\"body_size\":3,\"sha256\":\"ae4b3280e56e2faf83f414a6e3dabe9d5fbe18976544c05fed121accb85b53fc\"}}"));
        json.add("connections", JsonParser.parseString("{\"policy\":\"per_request\"}"));
        json.add("schedule", JsonParser.parseString("{\"loop\":\"closed\",\"workers\":2}"));
        json.add("extent", JsonParser.parseString("{\"requests\":20}"));
        json.add("timeouts", JsonParser.parseString("{\"connect_ns\":60000000000,\"request_ns\":60000000000}"));
        json.addProperty("seed", 1);
        json.addProperty("recording", "samples");
        json.addProperty("results", folder.resolve("results").toString());
        return new ClientSpec(new Fields(json, "training"), library.client());
    }

    private static JsonObject identity(Path folder) throws Failure, IOException {
        KeyStore store = TlsRehearsal.identity();
        try {
            Path certificate = folder.resolve("certificate.pem");
            Path key = folder.resolve("key.pem");
            Files.writeString(certificate, pem("CERTIFICATE", store.getCertificate(Pem.ALIAS).getEncoded()));
            Files.writeString(key,
                pem("PRIVATE KEY", store.getKey(Pem.ALIAS, Pem.PASSWORD.toCharArray()).getEncoded()));
            JsonObject tls = new JsonObject();
            tls.addProperty("certificate", certificate.toString());
            tls.addProperty("key", key.toString());
            tls.addProperty("resumption", false);
            tls.addProperty("early_data", false);
            return tls;
        } catch (GeneralSecurityException error) {
            throw new Failure(ErrorKind.OTHER, "reading the identity of the rehearsal: " + error);
        }
    }

    private static String pem(String kind, byte[] content) {
        String text = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(content);
        return "-----BEGIN " + kind + "-----\n" + text + "\n-----END " + kind + "-----\n";
    }
}
