//! Percentiles of each interval of an HdrHistogram log, as the crate `hdrhistogram` reads it.
use base64::{engine::general_purpose::STANDARD, Engine};
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::Histogram;
use std::io::Write;

fn main() {
    let path = std::env::args().nth(1).expect("the path of a log");
    let text = std::fs::read(path).expect("a log that can be read");
    let mut deserializer = Deserializer::new();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for entry in IntervalLogIterator::new(&text) {
        if let LogEntry::Interval(interval) = entry.expect("a line of a log") {
            let packed = STANDARD.decode(interval.encoded_histogram()).expect("base64");
            let histogram: Histogram<u64> = deserializer.deserialize(&mut &packed[..]).expect("a histogram");
            let start = interval.start_timestamp().as_secs_f64();
            let values = [0.5, 0.9, 0.99].map(|share| histogram.value_at_quantile(share));
            writeln!(out, "{start},{},{},{},{}", histogram.len(), values[0], values[1], values[2]).expect("output");
        }
    }
}
