package wirelab.contract;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.List;

/** An endpoint's abilities in one role. */
public record Role(List<Protocol> protocols, List<String> features) {
    public JsonObject json() {
        JsonObject object = new JsonObject();
        JsonArray names = new JsonArray();
        protocols.forEach(protocol -> names.add(protocol.token()));
        object.add("protocols", names);
        JsonArray all = new JsonArray();
        features.forEach(all::add);
        object.add("features", all);
        return object;
    }

    /** Takes the protocol of a spec, which must be one of this role's. */
    Protocol protocol(Fields spec) {
        String token = spec.choose("protocol", protocols.stream().map(Protocol::token).toList());
        return protocols.stream().filter(known -> known.token().equals(token)).findFirst().orElseThrow();
    }
}
