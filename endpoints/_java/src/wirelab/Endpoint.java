package wirelab;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonSyntaxException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import wirelab.client.Client;
import wirelab.client.Training;
import wirelab.contract.ErrorKind;
import wirelab.contract.Events;
import wirelab.contract.Failure;
import wirelab.contract.Fields;
import wirelab.contract.Role;
import wirelab.contract.Unsupported;
import wirelab.server.Server;

/** The commands of the contract: `describe`, `server --spec FILE`, `client --spec FILE`. */
public final class Endpoint {
    private static final int VERSION = 1;

    private Endpoint() {
    }

    public static void run(Library library, String[] arguments) {
        List<String> words = List.of(arguments);
        if (words.equals(List.of("describe"))) {
            describe(library);
            end(0);
        }
        if (words.equals(List.of("train"))) { // a step of the installation
            train(library);
        }
        if (words.size() != 3 || !List.of("server", "client").contains(words.get(0)) || !words.get(1).equals("--spec")) {
            System.err.println("usage: describe | server --spec FILE | client --spec FILE");
            end(2);
        }
        end(conduct(library, words.get(0), Path.of(words.get(2))));
    }

    private static void train(Library library) {
        try {
            Training.run(library);
            System.exit(0); // a normal exit, because the JVM then writes the archive of classes
        } catch (Exception error) {
            error.printStackTrace();
            System.exit(1);
        }
    }

    /** Not System.exit(): a thread that waits for a peer must not delay the exit. */
    public static void end(int status) {
        Runtime.getRuntime().halt(status);
    }

    /** Runs a role, and maps its end to the last event and the exit status. */
    private static int conduct(Library library, String role, Path spec) {
        try {
            boolean serves = role.equals("server");
            Role abilities = serves ? library.server() : library.client();
            if (abilities == null) {
                throw new Unsupported("the role `" + role + "`: " + library.endpoint() + " does not play it");
            }
            if (serves) {
                Server.run(library, read(spec), abilities);
            } else {
                Client.run(library, read(spec), abilities);
            }
            return 0;
        } catch (Unsupported reason) {
            Events.emit("unsupported", "message", reason.getMessage());
            return 127;
        } catch (Failure failure) {
            Events.emit("error", "kind", failure.kind.token(), "message", failure.getMessage());
            return 1;
        } catch (Throwable bug) { // a bug, or a machine's limit: it must be an event, not only a stack trace
            bug.printStackTrace();
            Events.emit("error", "kind", ErrorKind.OTHER.token(), "message", bug.toString());
            return 1;
        }
    }

    private static Fields read(Path path) throws Failure {
        try {
            Fields spec = new Fields(JsonParser.parseString(Files.readString(path)), "spec");
            if (spec.count("contract", 0) != VERSION) {
                throw new Unsupported("spec: `contract`; supported: " + VERSION);
            }
            return spec;
        } catch (IOException | JsonSyntaxException wrong) {
            throw new Failure(ErrorKind.OTHER, "reading the spec " + path + ": " + wrong);
        }
    }

    private static void describe(Library library) {
        JsonObject object = new JsonObject();
        object.addProperty("contract", VERSION);
        object.addProperty("name", library.endpoint());
        object.addProperty("library", library.name());
        object.addProperty("version", library.version());
        object.addProperty("language", "Java");
        if (library.server() != null) {
            object.add("server", library.server().json());
        }
        if (library.client() != null) {
            object.add("client", library.client().json());
        }
        Events.print(object);
    }
}
