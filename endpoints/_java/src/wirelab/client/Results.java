package wirelab.client;

import com.google.gson.JsonObject;
import java.io.IOException;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import wirelab.contract.ErrorKind;

/** The results file, and the counts of it. */
record Results(long requests, Map<ErrorKind, Long> errors) {
    /** Writes the records of all threads, with times from `zero` on. */
    static Results write(Recorder recorder, boolean histograms, Path path, long zero) throws IOException {
        try (Writer file = Files.newBufferedWriter(path)) {
            return histograms ? writeHistograms(recorder, file) : writeSamples(recorder, file, zero);
        }
    }

    /** One JSON line per request, in the order of their intended starts. */
    private static Results writeSamples(Recorder recorder, Writer file, long zero) throws IOException {
        List<Samples.Row> rows = new ArrayList<>();
        recorder.parts().forEach(part -> ((Samples) part).rows(rows));
        rows.sort(Comparator.comparingLong(row -> row.intended() - zero));
        Map<ErrorKind, Long> errors = new EnumMap<>(ErrorKind.class);
        StringBuilder line = new StringBuilder();
        for (Samples.Row row : rows) {
            line.setLength(0);
            row.write(line, zero);
            file.append(line);
            if (row.error() != null) {
                errors.merge(row.error(), 1L, Long::sum);
            }
        }
        return new Results(rows.size() - errors.values().stream().mapToLong(Long::longValue).sum(), errors);
    }

    private static Results writeHistograms(Recorder recorder, Writer file) throws IOException {
        Counters all = new Counters();
        recorder.parts().forEach(part -> all.merge((Counters) part));
        file.append(all.json().toString()).append('\n');
        return new Results(all.requests(), all.errors());
    }

    static JsonObject json(Map<ErrorKind, Long> errors) {
        JsonObject object = new JsonObject();
        errors.forEach((kind, count) -> object.addProperty(kind.token(), count));
        return object;
    }
}
