package wirelab.client;

import java.io.IOException;
import java.util.Map;
import wirelab.Endpoint;
import wirelab.Library;
import wirelab.contract.ClientSpec;
import wirelab.contract.Commands;
import wirelab.contract.ErrorKind;
import wirelab.contract.Events;
import wirelab.contract.Failure;
import wirelab.contract.Fields;
import wirelab.contract.Role;
import wirelab.net.TlsRehearsal;

/** The client's side of the conversation. */
public final class Client {
    private Client() {
    }

    public static void run(Library library, Fields fields, Role role) throws Failure, InterruptedException {
        ClientSpec spec = new ClientSpec(fields, role);
        Transport transport = library.client(spec);
        spec.end();
        Commands commands = new Commands(Client::giveUp);
        Rehearsal.run(spec);
        if (spec.protocol.isSecure()) {
            TlsRehearsal.run();
        }
        transport.prepare().close(() -> { }); // the first one loads much of a library
        Engine engine = new Engine(spec, transport);
        Map<String, Object> ready = transport.configured();
        Events.emit("ready", "configured", Events.json(ready));

        commands.expect("go");
        engine.check();
        engine.open();
        transport.begin();
        System.gc(); // garbage of the preparation is collected now, not in the window
        Events.emit("warm");

        long zero = commands.expect("go");
        long window = engine.measure(zero);
        Events.emit("end", "window_ns", window);

        commands.expect("finish");
        Map<String, Long> report = transport.report();
        engine.close();
        Results results;
        try {
            results = Results.write(engine.recorder(), spec.histograms, spec.results, zero);
        } catch (IOException error) {
            throw new Failure(ErrorKind.OTHER, "writing the results to " + spec.results + ": " + error);
        }
        if (engine.firstFailure() != null) {
            System.err.println("the first failed request: " + engine.firstFailure().getMessage());
        }
        Events.emit("done", "requests", results.requests(), "errors", Results.json(results.errors()),
            "configured", Events.json(transport.configured()), "transport", report == null ? null : Events.json(report));
    }

    private static void giveUp() {
        Events.emit("error", "kind", ErrorKind.OTHER.token(), "message", "told to stop before the end");
        Endpoint.end(1);
    }
}
