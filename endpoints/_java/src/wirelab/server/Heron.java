package wirelab.server;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.nio.charset.StandardCharsets;

/** The square root of the feature `heron`, as the contract defines it. */
final class Heron {
    private static final int DECIMALS = 12;

    private Heron() {
    }

    /** The root of a number in text form, as the body of a response; null: it has none. */
    static byte[] answer(String number) {
        try {
            double root = root(Double.parseDouble(number));
            // Not String.format(), which rounds the number's shortest text instead of the number.
            return Double.isNaN(root) ? null : new BigDecimal(root).setScale(DECIMALS, RoundingMode.HALF_EVEN)
                .toPlainString().getBytes(StandardCharsets.US_ASCII);
        } catch (NumberFormatException none) {
            return null;
        }
    }

    private static double root(double number) {
        if (!(number >= 0) || number == Double.POSITIVE_INFINITY) {
            return Double.NaN;
        }
        if (number == 0) {
            return 0;
        }
        // Never below the root, from where each mean falls towards it until rounding keeps it from falling.
        double guess = Math.max(number, 1);
        for (double mean = (guess + number / guess) / 2; mean < guess; mean = (guess + number / guess) / 2) {
            guess = mean;
        }
        return guess;
    }
}
