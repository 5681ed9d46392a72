import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Base64;
import java.util.Random;
import org.HdrHistogram.AbstractHistogram;
import org.HdrHistogram.HistogramIterationValue;

/**
 * Writes a line for every kind of histogram that the HdrHistogram on the class path has, compressed and not: counts of 2, 4
 * and 8 bytes, and double histograms whose range has moved. Classes are looked up by name, because versions differ.
 *
 * <p>WriteBlobs OUT BINS SEED: BINS gets what was recorded, a line each: "- 0 1000 ? RATIO", then low_next:count of each bin.
 */
public final class WriteBlobs {
    private static final String[] KINDS = {
        "Histogram", "IntCountsHistogram", "ShortCountsHistogram", "IntHistogram", "ShortHistogram", "DoubleHistogram"
    };

    public static void main(String[] words) throws Exception {
        Random random = new Random(Long.parseLong(words[2]));
        PrintStream out = new PrintStream(words[0], "UTF-8");
        PrintStream recorded = new PrintStream(words[1], "UTF-8");
        out.println("#[Written by tests/java/WriteBlobs.java]");
        out.println("#[StartTime: 1700000000.000 (seconds since epoch)]");
        int second = 0;
        for (String kind : KINDS) {
            Class<?> found;
            try {
                found = Class.forName("org.HdrHistogram." + kind);
            } catch (ClassNotFoundException absent) {
                continue;
            }
            for (int digits = 1; digits <= 3; digits++) {
                Object histogram = filled(found, digits, random);
                for (String method : new String[] {"encodeIntoByteBuffer", "encodeIntoCompressedByteBuffer"}) {
                    byte[] data = encoded(histogram, method);
                    out.println(second + ".000,1.000,0.00" + (method.contains("Compressed") ? 1 : 0) + "," + Base64.getEncoder().encodeToString(data));
                    recorded.println("- 0 1000 ?" + (histogram instanceof AbstractHistogram ? whole((AbstractHistogram) histogram) : real(histogram)));
                    second++;
                }
            }
        }
        out.close();
        recorded.close();
    }

    private static String whole(AbstractHistogram histogram) {
        StringBuilder out = new StringBuilder(" 1.0");
        for (HistogramIterationValue one : histogram.recordedValues()) {
            long value = one.getValueIteratedTo();
            out.append(' ').append(histogram.lowestEquivalentValue(value)).append('_').append(histogram.nextNonEquivalentValue(value));
            out.append(':').append(one.getCountAtValueIteratedTo());
        }
        return out.toString();
    }

    /** Bins of a double histogram as the library itself reads them back: 2.0 writes less than it holds once the range has moved. */
    private static String real(Object written) throws Exception {
        Class<?> kind = written.getClass();
        ByteBuffer data = ByteBuffer.wrap(encoded(written, "encodeIntoByteBuffer"));
        Object histogram = kind.getMethod("decodeFromByteBuffer", ByteBuffer.class, long.class).invoke(null, data, 0L);
        Method low = kind.getMethod("lowestEquivalentValue", double.class);
        Method next = kind.getMethod("nextNonEquivalentValue", double.class);
        Method count = kind.getMethod("getCountAtValue", double.class);
        double last = (Double) kind.getMethod("getMaxValue").invoke(histogram);
        double value = (Double) low.invoke(histogram, kind.getMethod("getMinValue").invoke(histogram));
        StringBuilder out = new StringBuilder(" double");
        while (value <= last) {
            long found = ((Number) count.invoke(histogram, value)).longValue();
            double above = (Double) next.invoke(histogram, value);
            if (found > 0) {
                out.append(' ').append(value).append('_').append(above).append(':').append(found);
            }
            value = above;
        }
        return out.toString();
    }

    private static Object filled(Class<?> kind, int digits, Random random) throws Exception {
        if (kind.getSimpleName().equals("DoubleHistogram")) {
            Object histogram = kind.getConstructor(long.class, int.class).newInstance(1L << 20, digits);
            Method record = kind.getMethod("recordValue", double.class);
            double scale = Math.exp(random.nextGaussian() * 20);
            for (int sample = 0; sample < 150; sample++) {
                record.invoke(histogram, scale * Math.exp(random.nextGaussian() * 0.8));
            }
            return histogram;
        }
        Object histogram = kind.getConstructor(long.class, long.class, int.class).newInstance(1L, 3_600_000_000L, digits);
        Method record = kind.getMethod("recordValue", long.class);
        for (int sample = 0; sample < 150; sample++) {
            record.invoke(histogram, (long) (2000 * Math.exp(random.nextGaussian() * 2)));
        }
        return histogram;
    }

    private static byte[] encoded(Object histogram, String method) throws Exception {
        ByteBuffer buffer = ByteBuffer.allocate(16 << 20);
        Object length = histogram.getClass().getMethod(method, ByteBuffer.class).invoke(histogram, buffer);
        return Arrays.copyOf(buffer.array(), (Integer) length);
    }
}
