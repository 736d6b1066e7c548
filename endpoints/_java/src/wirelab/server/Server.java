package wirelab.server;

import com.google.gson.JsonObject;
import java.util.concurrent.CountDownLatch;
import wirelab.Library;
import wirelab.contract.Commands;
import wirelab.contract.Events;
import wirelab.contract.Failure;
import wirelab.contract.Fields;
import wirelab.contract.Role;
import wirelab.contract.ServerSpec;
import wirelab.net.TlsRehearsal;

/** The server's side of the conversation. */
public final class Server {
    /** The limit for a library's end; the contract's limit is two seconds in total. */
    private static final long ENDING_MS = 1200;

    private Server() {
    }

    public static Site site(ServerSpec spec) throws Failure {
        return new Site(spec);
    }

    public static void run(Library library, Fields fields, Role role) throws Failure, InterruptedException {
        ServerSpec spec = new ServerSpec(fields, role);
        Site site = site(spec);
        if (spec.protocol.isSecure()) {
            TlsRehearsal.run();
        }
        Running server = library.serve(spec, site);
        spec.end();
        Events.emit("ready", "port", server.port(), "configured", Events.json(server.configured()));
        CountDownLatch stopped = new CountDownLatch(1);
        new Commands(stopped::countDown,
            spec.counts ? () -> Events.emit("counted", "requests", site.answered()) : null);
        stopped.await();
        var report = server.report();
        Thread ending = new Thread(server::stop, "ending");
        ending.setDaemon(true);
        ending.start();
        ending.join(ENDING_MS);
        Events.emit("done", "requests", site.answered(), "configured", new JsonObject(),
            "transport", report == null ? null : Events.json(report));
    }

}
