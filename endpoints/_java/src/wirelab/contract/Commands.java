package wirelab.contract;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/** The words on standard input; `stop` and the end of input call `onStop`, `count` calls `onCount`, at any time. */
public final class Commands {
    private record Word(String text, long at) {
    }

    private final BlockingQueue<Word> words = new LinkedBlockingQueue<>();
    private final Runnable onStop;
    private final Runnable onCount;

    /** For an endpoint that counts nothing: `count` is an unknown word. */
    public Commands(Runnable onStop) {
        this(onStop, null);
    }

    public Commands(Runnable onStop, Runnable onCount) {
        this.onStop = onStop;
        this.onCount = onCount;
        Thread reader = new Thread(this::read, "commands");
        reader.setDaemon(true);
        reader.start();
    }

    private void read() {
        try {
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String word = line.trim();
                if (word.equals("stop")) {
                    break;
                }
                if (word.equals("count") && onCount != null) {
                    onCount.run();
                    continue;
                }
                words.add(new Word(word, System.nanoTime()));
                if (word.equals("finish")) {
                    return; // the last word; the end of input has no meaning any more
                }
            }
        } catch (IOException broken) {
            // Counts as its end.
        }
        onStop.run();
    }

    /** Waits for a word and returns when it came (of the clock of all records). */
    public long expect(String wanted) throws Failure {
        try {
            Word word = words.take();
            if (!word.text.equals(wanted)) {
                throw new Failure(ErrorKind.OTHER, "told `" + word.text + "` while waiting for `" + wanted + "`");
            }
            return word.at;
        } catch (InterruptedException interrupted) {
            throw new Failure(ErrorKind.OTHER, "interrupted while waiting for `" + wanted + "`");
        }
    }
}
