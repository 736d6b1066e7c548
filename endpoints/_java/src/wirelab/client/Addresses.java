package wirelab.client;

import com.google.gson.JsonElement;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import wirelab.contract.Address;
import wirelab.contract.ClientSpec;

/** The addresses of the spec's server name: new connections go to them in turn, the first one to the first. */
public final class Addresses {
    private final List<InetSocketAddress> all = new ArrayList<>();
    private final AtomicInteger turns = new AtomicInteger();

    /** Takes `addresses` from the spec. */
    public Addresses(ClientSpec spec) {
        if (spec.rest.has("addresses")) {
            for (JsonElement each : spec.rest.list("addresses")) {
                InetAddress address = Address.of(each.getAsString());
                all.add(new InetSocketAddress(address, spec.port));
            }
        }
        if (all.isEmpty()) {
            all.add(new InetSocketAddress(spec.address, spec.port));
        }
    }

    public InetSocketAddress next() {
        return all.get(Math.floorMod(turns.getAndIncrement(), all.size()));
    }

    /** Whether any of them is of IP version 6. */
    public boolean isVersion6() {
        return all.stream().anyMatch(each -> each.getAddress() instanceof Inet6Address);
    }
}
