package wirelab.client;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.util.List;
import java.util.Map;
import wirelab.contract.ClientSpec;
import wirelab.contract.Failure;
import wirelab.contract.Fields;
import wirelab.contract.Handshake;
import wirelab.contract.Role;

/**
 * Runs the engine against a transport without a network, before `ready`: it loads the engine's classes and compiles its
 * hot code. The spec's warm-up warms the library's own code up.
 */
final class Rehearsal {
    private static final int REQUESTS = 20_000;

    private Rehearsal() {
    }

    static void run(ClientSpec real) throws Failure, InterruptedException {
        boolean persistent = real.connections > 0;
        JsonObject spec = new JsonObject();
        spec.addProperty("protocol", "h1c");
        spec.addProperty("address", "127.0.0.1");
        spec.addProperty("port", 1);
        spec.addProperty("server_name", "rehearsal");
        spec.add("request", JsonParser.parseString("{\"method\":\"GET\",\"path\":\"/\",\"body_size\":0}"));
        spec.add("connections", JsonParser.parseString(persistent
            ? "{\"policy\":\"persistent\",\"connections\":4,\"streams\":1}" : "{\"policy\":\"per_request\"}"));
        spec.add("schedule", JsonParser.parseString("{\"loop\":\"closed\",\"workers\":4}"));
        spec.add("extent", JsonParser.parseString("{\"requests\":" + REQUESTS + "}"));
        spec.add("timeouts", JsonParser.parseString("{\"connect_ns\":60000000000,\"request_ns\":60000000000}"));
        spec.addProperty("seed", 1);
        spec.addProperty("recording", real.histograms ? "histograms" : "samples");
        spec.addProperty("results", "never-written");
        Role role = new Role(List.of(wirelab.contract.Protocol.H1C), List.of());
        Engine engine = new Engine(new ClientSpec(new Fields(spec, "rehearsal"), role), new Stage());
        engine.open();
        engine.measure(System.nanoTime());
        engine.close();
        engine.timer.shutdownNow();
    }

    /** Connections that answer at once. */
    private static final class Stage implements Transport {
        @Override
        public Connection prepare() {
            return new Connection() {
                @Override
                public void open(Opening opening) {
                    opening.connected(System.nanoTime());
                    opening.opened(System.nanoTime());
                }

                @Override
                public void send(Exchange exchange) {
                    exchange.firstByte(System.nanoTime());
                    exchange.status(200);
                    exchange.complete(System.nanoTime());
                }

                @Override
                public boolean isOpen() {
                    return true;
                }

                @Override
                public Handshake handshake() {
                    return null;
                }

                @Override
                public void close(Runnable then) {
                    then.run();
                }
            };
        }

        @Override
        public Map<String, Object> configured() {
            return Map.of();
        }
    }
}
