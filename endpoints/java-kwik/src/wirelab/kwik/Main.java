package wirelab.kwik;

import java.util.List;
import tech.kwik.core.KwikVersion;
import tech.kwik.flupke.FlupkeVersion;
import wirelab.Endpoint;
import wirelab.Library;
import wirelab.client.Transport;
import wirelab.contract.ClientSpec;
import wirelab.contract.Failure;
import wirelab.contract.Protocol;
import wirelab.contract.Role;
import wirelab.contract.ServerSpec;
import wirelab.net.Hosts;
import wirelab.server.Running;
import wirelab.server.Site;

/** kwik, QUIC in Java, and flupke, HTTP/3 on top of it. */
public final class Main implements Library {
    private static final Role BOTH =
        new Role(List.of(Protocol.H3, Protocol.QUIC), List.of("files", "echo", "bytes", "delay", "redirect", "heron"));

    public static void main(String[] arguments) {
        Hosts.prepare();
        Endpoint.run(new Main(), arguments);
    }

    @Override
    public String endpoint() {
        return "java-kwik";
    }

    @Override
    public String name() {
        return "kwik, flupke";
    }

    @Override
    public String version() {
        return KwikVersion.getVersion() + ", " + FlupkeVersion.getVersion();
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
        return new KwikServer(spec, site);
    }

    @Override
    public Transport client(ClientSpec spec) throws Failure {
        return new KwikTransport(spec);
    }
}
