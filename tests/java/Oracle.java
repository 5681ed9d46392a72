import java.io.File;
import java.io.PrintStream;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.HdrHistogram.AbstractHistogram;
import org.HdrHistogram.DoubleHistogram;
import org.HdrHistogram.EncodableHistogram;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramIterationValue;
import org.HdrHistogram.HistogramLogReader;
import org.HdrHistogram.DoubleHistogramIterationValue;

/**
 * What the Java library says of an interval log.
 *
 * <pre>
 * Oracle bins LOG                 a line an interval: tag, start and length in ms, digits, ratio, then low-high:count ...
 * Oracle percentiles LOG P,P,...  a line an interval: tag, start in ms, count, then the value at each percentile
 * Oracle hgrm LOG RATIO TICKS     the percentile distribution of each tag, added up, as text
 * Oracle corrected LOG INTERVAL   bins of each interval, corrected for coordinated omission with a known interval
 * </pre>
 */
public final class Oracle {
    public static void main(String[] words) throws Exception {
        Locale.setDefault(Locale.US);
        HistogramLogReader reader = new HistogramLogReader(new File(words[1]));
        Map<String, Histogram> sums = new TreeMap<>();
        StringBuilder out = new StringBuilder();
        EncodableHistogram next;
        while ((next = reader.nextIntervalHistogram()) != null) {
            String tag = next.getTag() == null ? "-" : next.getTag();
            String front = tag + " " + next.getStartTimeStamp() + " " + (next.getEndTimeStamp() - next.getStartTimeStamp());
            switch (words[0]) {
                case "bins":
                    out.append(front).append(bins(next)).append('\n');
                    break;
                case "corrected":
                    Histogram corrected = ((Histogram) next).copyCorrectedForCoordinatedOmission(Long.parseLong(words[2]));
                    out.append(front).append(bins(corrected)).append('\n');
                    break;
                case "percentiles":
                    out.append(tag).append(' ').append(next.getStartTimeStamp());
                    out.append(' ').append(((Histogram) next).getTotalCount());
                    for (String level : words[2].split(",")) {
                        out.append(' ').append(((Histogram) next).getValueAtPercentile(Double.parseDouble(level)));
                    }
                    out.append('\n');
                    break;
                case "hgrm":
                    Histogram histogram = (Histogram) next;
                    Histogram sum = sums.get(tag);
                    if (sum == null) {
                        long lowest = histogram.getLowestDiscernibleValue();
                        sum = new Histogram(lowest, 2 * lowest, histogram.getNumberOfSignificantValueDigits());
                        sum.setAutoResize(true);
                        sums.put(tag, sum);
                    }
                    sum.add(histogram);
                    break;
                default:
                    throw new IllegalArgumentException(words[0]);
            }
        }
        PrintStream printed = new PrintStream(System.out, false, "UTF-8");
        printed.print(out);
        for (Map.Entry<String, Histogram> entry : sums.entrySet()) {
            printed.println("tag " + entry.getKey());
            entry.getValue().outputPercentileDistribution(printed, Integer.parseInt(words[3]), Double.parseDouble(words[2]));
        }
        printed.flush();
    }

    private static String bins(EncodableHistogram any) {
        StringBuilder out = new StringBuilder();
        if (any instanceof DoubleHistogram) {
            DoubleHistogram histogram = (DoubleHistogram) any;
            out.append(' ').append(histogram.getNumberOfSignificantValueDigits());
            out.append(' ').append(histogram.getIntegerToDoubleValueConversionRatio());
            for (DoubleHistogramIterationValue one : histogram.recordedValues()) {
                double value = one.getValueIteratedTo();
                out.append(' ').append(histogram.lowestEquivalentValue(value)).append('_').append(histogram.nextNonEquivalentValue(value));
                out.append(':').append(one.getCountAtValueIteratedTo());
            }
            return out.toString();
        }
        AbstractHistogram histogram = (AbstractHistogram) any;
        out.append(' ').append(histogram.getNumberOfSignificantValueDigits()).append(" 1.0");
        for (HistogramIterationValue one : histogram.recordedValues()) {
            long value = one.getValueIteratedTo();
            out.append(' ').append(histogram.lowestEquivalentValue(value)).append('_').append(histogram.nextNonEquivalentValue(value));
            out.append(':').append(one.getCountAtValueIteratedTo());
        }
        return out.toString();
    }
}
