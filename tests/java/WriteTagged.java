import java.io.PrintStream;
import java.util.Random;
import org.HdrHistogram.DoubleHistogram;
import org.HdrHistogram.EncodableHistogram;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramLogWriter;

/**
 * Writes what only HdrHistogram 2.1.10 and later can: tags, resized histograms, and double histograms whose range has moved.
 *
 * <p>WriteTagged OUT (tagged|resized|double) INTERVALS SEED START_MS
 */
public final class WriteTagged {
    public static void main(String[] words) throws Exception {
        String form = words[1];
        int intervals = Integer.parseInt(words[2]);
        Random random = new Random(Long.parseLong(words[3]));
        long start = Long.parseLong(words[4]);
        PrintStream out = new PrintStream(words[0], "UTF-8");
        HistogramLogWriter writer = new HistogramLogWriter(out);
        writer.outputComment("Logging op latencies for Cassandra Stress");
        writer.outputLogFormatVersion();
        writer.outputBaseTime(start);
        writer.setBaseTime(start);
        writer.outputStartTime(start);
        writer.outputLegend();
        String[] tags = form.equals("tagged") ? new String[] {"insert-st", "insert-rt", "insert-wt", "READ-ST", "other"} : new String[] {null};
        for (int interval = 0; interval < intervals; interval++) {
            for (String tag : tags) {
                EncodableHistogram histogram = form.equals("double") ? real(random, interval) : whole(random, interval, form);
                histogram.setTag(tag);
                histogram.setStartTimeStamp(start + interval * 1000L);
                histogram.setEndTimeStamp(start + interval * 1000L + 1000);
                writer.outputIntervalHistogram(histogram);
            }
        }
        out.close();
    }

    private static Histogram whole(Random random, int interval, String form) {
        Histogram histogram = form.equals("resized") ? new Histogram(3) : new Histogram(1, 3_600_000_000_000L, 3);
        for (int sample = 0; sample < 300; sample++) {
            double wide = form.equals("resized") ? 4.0 : 0.9;
            histogram.recordValue((long) Math.min(1e15, 200_000 * Math.exp(random.nextGaussian() * wide)));
        }
        return histogram;
    }

    private static DoubleHistogram real(Random random, int interval) {
        DoubleHistogram histogram = new DoubleHistogram(interval % 2 == 0 ? 2 : 3);
        double scale = new double[] {1e6, 1, 1e-3, 3.7e8}[interval % 4];
        for (int sample = 0; sample < 200; sample++) {
            histogram.recordValue(scale * Math.exp(random.nextGaussian() * 1.5));
        }
        return histogram;
    }
}
