package wirelab.contract;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Collection;

/** A JSON object. Every field must be taken: one that is left at the end is unsupported, never ignored. */
public final class Fields {
    private final JsonObject left;
    private final String where;

    public Fields(JsonElement value, String where) {
        if (!value.isJsonObject()) {
            throw new Unsupported(where + " is not an object");
        }
        this.left = value.getAsJsonObject().deepCopy();
        this.where = where;
        // In the schema, null means a field that is not set.
        this.left.entrySet().removeIf(field -> field.getValue().isJsonNull());
    }

    public boolean has(String name) {
        return left.has(name);
    }

    public JsonElement take(String name) {
        if (!has(name)) {
            throw new Unsupported(where + ": the field `" + name + "` is missing");
        }
        return left.remove(name);
    }

    public String text(String name) {
        JsonElement value = take(name);
        if (!value.isJsonPrimitive() || !value.getAsJsonPrimitive().isString()) {
            throw cannot(name, value, "a string");
        }
        return value.getAsString();
    }

    /** A string, or null where the field is absent. */
    public String textOrNull(String name) {
        return has(name) ? text(name) : null;
    }

    /** A string that must be one of the known ones. */
    public String choose(String name, Collection<String> known) {
        String value = text(name);
        if (!known.contains(value)) {
            throw new Unsupported(where + ": `" + name + "` = `" + value + "`; supported: " + String.join(", ", known));
        }
        return value;
    }

    public boolean flag(String name) {
        JsonElement value = take(name);
        if (!value.isJsonPrimitive() || !value.getAsJsonPrimitive().isBoolean()) {
            throw cannot(name, value, "true or false");
        }
        return value.getAsBoolean();
    }

    /** A whole number from `least` on. */
    public long count(String name, long least) {
        JsonElement value = left.get(name);
        BigInteger number = whole(name);
        if (number.compareTo(BigInteger.valueOf(least)) < 0 || number.bitLength() > 63) {
            throw cannot(name, value, "whole numbers from " + least);
        }
        return number.longValue();
    }

    /** All 64 bits of a whole number. */
    public long bits(String name) {
        return whole(name).longValue();
    }

    public double number(String name) {
        JsonElement value = take(name);
        if (!value.isJsonPrimitive() || !value.getAsJsonPrimitive().isNumber()) {
            throw cannot(name, value, "a number");
        }
        return value.getAsDouble();
    }

    public Fields inner(String name) {
        return new Fields(take(name), where + "." + name);
    }

    /** An object, empty where the field is absent. */
    public Fields innerOrEmpty(String name) {
        return has(name) ? inner(name) : new Fields(new JsonObject(), where + "." + name);
    }

    public JsonArray list(String name) {
        JsonElement value = take(name);
        if (!value.isJsonArray()) {
            throw cannot(name, value, "a list");
        }
        return value.getAsJsonArray();
    }

    public void end() {
        if (left.size() > 0) {
            throw new Unsupported(where + ": cannot honour `" + String.join("`, `", left.keySet()) + "`");
        }
    }

    private BigInteger whole(String name) {
        JsonElement value = take(name);
        try {
            if (value.isJsonPrimitive() && value.getAsJsonPrimitive().isNumber()) {
                return new BigDecimal(value.getAsString()).toBigIntegerExact();
            }
        } catch (ArithmeticException | NumberFormatException notWhole) {
            // Reported below.
        }
        throw cannot(name, value, "whole numbers");
    }

    private Unsupported cannot(String name, JsonElement value, String supported) {
        return new Unsupported(where + ": `" + name + "` = " + value + "; supported: " + supported);
    }
}
