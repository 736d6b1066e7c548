package wirelab.contract;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** The events of an endpoint: one JSON object per line on standard output. */
public final class Events {
    private static final FileOutputStream OUT = new FileOutputStream(FileDescriptor.out);

    private Events() {
    }

    /** Prints one event in one write. `fields` are names and values in turn. */
    public static synchronized void emit(String event, Object... fields) {
        JsonObject object = new JsonObject();
        object.addProperty("event", event);
        for (int i = 0; i < fields.length; i += 2) {
            add(object, (String) fields[i], fields[i + 1]);
        }
        print(object);
    }

    public static synchronized void print(JsonObject object) {
        try {
            OUT.write((object + "\n").getBytes(StandardCharsets.UTF_8));
        } catch (IOException gone) {
            // wirelab has closed the pipe; the end of standard input reports the same.
        }
    }

    /** Facts by name as an object. */
    public static JsonObject json(Map<String, ?> facts) {
        JsonObject object = new JsonObject();
        facts.forEach((name, value) -> add(object, name, value));
        return object;
    }

    private static void add(JsonObject object, String name, Object value) {
        if (value instanceof JsonElement element) {
            object.add(name, element);
        } else if (value instanceof Number number) {
            object.addProperty(name, number);
        } else if (value instanceof Boolean flag) {
            object.addProperty(name, flag);
        } else if (value != null) {
            object.addProperty(name, value.toString());
        }
    }
}
