package wirelab;

import wirelab.client.Transport;
import wirelab.contract.ClientSpec;
import wirelab.contract.Failure;
import wirelab.contract.Role;
import wirelab.contract.ServerSpec;
import wirelab.server.Running;
import wirelab.server.Site;

/** The part that an endpoint adds to the shared code: its library. An unsupported role is null. */
public interface Library {
    /** The endpoint's name, the same as its folder's. */
    String endpoint();

    /** The library that is measured. */
    String name();

    /** Its version, as the library reports it. */
    String version();

    default Role server() {
        return null;
    }

    default Role client() {
        return null;
    }

    /** Starts a server. Takes the honoured fields from the spec; the remaining ones are refused afterwards. */
    default Running serve(ServerSpec spec, Site site) throws Failure {
        throw new UnsupportedOperationException();
    }

    /** Builds a client, with nothing connected. Takes the honoured fields from the spec; the remaining ones are refused. */
    default Transport client(ClientSpec spec) throws Failure {
        throw new UnsupportedOperationException();
    }
}
