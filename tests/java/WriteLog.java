import java.io.PrintStream;
import java.util.Random;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramLogWriter;

/**
 * Writes an interval log with whatever HdrHistogram is on the class path: 1.2 writes V0, 2.0 writes V1, 2.1 and later V2.
 *
 * <p>WriteLog OUT DIGITS LOWEST INTERVALS SAMPLES SEED HIGHEST START_MS MEDIAN [plain]: log-normal values, now and then a stall; unless plain, also empty
 * intervals and large counts.
 */
public final class WriteLog {
    public static void main(String[] words) throws Exception {
        int digits = Integer.parseInt(words[1]);
        long lowest = Long.parseLong(words[2]);
        int intervals = Integer.parseInt(words[3]);
        int samples = Integer.parseInt(words[4]);
        Random random = new Random(Long.parseLong(words[5]));
        long highest = Long.parseLong(words[6]);
        long start = Long.parseLong(words[7]);
        double median = Double.parseDouble(words[8]);
        PrintStream out = new PrintStream(words[0], "UTF-8");
        HistogramLogWriter writer = new HistogramLogWriter(out);
        writer.outputComment("[Written by tests/java/WriteLog.java]");
        writer.outputLogFormatVersion();
        writer.outputStartTime(start);
        writer.outputLegend();
        for (int interval = 0; interval < intervals; interval++) {
            Histogram histogram = new Histogram(lowest, highest, digits);
            int count = words.length == 9 && interval % 17 == 5 ? 0 : samples;
            for (int sample = 0; sample < count; sample++) {
                double value = median * Math.exp(random.nextGaussian() * 0.7);
                if (random.nextInt(1000) == 0) {
                    value *= 1000;
                }
                histogram.recordValue(Math.min((long) value, highest));
            }
            if (words.length == 9 && interval % 7 == 3) {
                histogram.recordValueWithCount(lowest * 3, 70_000L + interval);
            }
            if (words.length == 9 && interval % 11 == 4) {
                histogram.recordValueWithCount(0, 5_000_000_000L);
            }
            writer.outputIntervalHistogram(interval, interval + 1, histogram);
        }
        out.close();
    }
}
