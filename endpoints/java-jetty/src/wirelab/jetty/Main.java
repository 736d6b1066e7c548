package wirelab.jetty;

import java.util.List;
import org.eclipse.jetty.util.Jetty;
import wirelab.Endpoint;
import wirelab.Library;
import wirelab.client.Transport;
import wirelab.contract.ClientSpec;
import wirelab.contract.Failure;
import wirelab.contract.Protocol;
import wirelab.contract.Role;
import wirelab.contract.ServerSpec;
import wirelab.server.Running;
import wirelab.server.Site;

/** Jetty: its server and its client. */
public final class Main implements Library {
    private static final Role BOTH = new Role(
        List.of(Protocol.H1C, Protocol.H1, Protocol.H2C, Protocol.H2, Protocol.H3),
        List.of("files", "echo", "bytes", "delay", "redirect", "heron"));

    public static void main(String[] arguments) {
        // Standard output belongs to the conversation; records have Jetty's report on a failed request.
        System.setProperty("org.slf4j.simpleLogger.defaultLogLevel", "error");
        Endpoint.run(new Main(), arguments);
    }

    @Override
    public String endpoint() {
        return "java-jetty";
    }

    @Override
    public String name() {
        return "Jetty, quiche";
    }

    @Override
    public String version() {
        return Jetty.VERSION;
    }

    @Override
    public Role server() {
        return BOTH;
    }

    @Override
    public Role client() {
        return BOTH;
    }

    @Override
    public Running serve(ServerSpec spec, Site site) throws Failure {
        return new JettyServer(spec, site);
    }

    @Override
    public Transport client(ClientSpec spec) throws Failure {
        return spec.protocol == Protocol.H3 ? new QuicTransport(spec) : new TcpTransport(spec);
    }
}
