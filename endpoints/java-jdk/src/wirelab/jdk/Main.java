package wirelab.jdk;

import java.util.List;
import wirelab.Endpoint;
import wirelab.Library;
import wirelab.client.Transport;
import wirelab.contract.ClientSpec;
import wirelab.contract.Failure;
import wirelab.contract.Protocol;
import wirelab.contract.Role;
import wirelab.net.Hosts;

/** The client of the JDK, `java.net.http.HttpClient`. */
public final class Main implements Library {
    public static void main(String[] arguments) {
        Hosts.prepare();
        System.setProperty("java.nio.channels.spi.SelectorProvider", Channels.class.getName());
        // A failed request is a record; the library must not try again.
        System.setProperty("jdk.httpclient.disableRetryConnect", "true");
        System.setProperty("jdk.httpclient.redirects.retrylimit", "1");
        Endpoint.run(new Main(), arguments);
    }

    @Override
    public String endpoint() {
        return "java-jdk";
    }

    @Override
    public String name() {
        return "java.net.http.HttpClient";
    }

    @Override
    public String version() {
        return Runtime.version().toString();
    }

    @Override
    public Role client() {
        return new Role(List.of(Protocol.H1C, Protocol.H1, Protocol.H2), List.of("files", "echo", "bytes", "delay", "redirect", "heron"));
    }

    @Override
    public Transport client(ClientSpec spec) throws Failure {
        return new JdkTransport(spec);
    }
}
