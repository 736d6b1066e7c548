package wirelab.netty;

import io.netty.util.Version;
import java.util.List;
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

/** Netty's codecs of HTTP. */
public final class Main implements Library {
    private static final List<String> FEATURES = List.of("files", "echo", "bytes", "delay", "redirect", "heron");
    private static final Role BOTH = new Role(
        List.of(Protocol.H1C, Protocol.H1, Protocol.H2C, Protocol.H2, Protocol.H3), FEATURES);

    public static void main(String[] arguments) {
        Endpoint.run(new Main(), arguments);
    }

    @Override
    public String endpoint() {
        return "java-netty";
    }

    @Override
    public String name() {
        return "Netty, quiche";
    }

    @Override
    public String version() {
        return Version.identify().get("netty-common").artifactVersion();
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
        return spec.protocol == Protocol.H3 ? new QuicServer(spec, site) : new TcpServer(spec, site);
    }

    @Override
    public Transport client(ClientSpec spec) throws Failure {
        return spec.protocol == Protocol.H3 ? new QuicTransport(spec) : new TcpTransport(spec);
    }
}
