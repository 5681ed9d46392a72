// Writes an interval log as scylla-bench does with the Go library: write OUT seconds|ms UNIT_NS mixed|plain, seeded.
package main

import (
	"fmt"
	"math"
	"math/rand"
	"os"
	"strconv"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

const start = int64(1700000000)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	unit, err := strconv.ParseInt(os.Args[3], 10, 64)
	check(err)
	file, err := os.Create(os.Args[1])
	check(err)
	log := hdr.NewHistogramLogWriter(file)
	check(log.OutputLogFormatVersion())
	check(log.OutputComment("Logging op latencies for Cassandra Stress"))
	log.SetBaseTime(start * 1000)
	check(log.OutputBaseTime(start * 1000))
	check(log.OutputStartTime(start * 1000))
	check(log.OutputLegend())
	tags := []string{"co-fixed", "raw"}
	if os.Args[4] == "mixed" {
		tags = append(tags, "co-fixed-read", "raw-read", "co-fixed-write", "raw-write")
	}
	found := map[string]*hdr.Histogram{}
	for _, tag := range tags {
		found[tag] = hdr.New(50000/unit, 90000000000/unit, 3)
		found[tag].SetTag(tag)
	}
	noise := rand.New(rand.NewSource(7))
	at := start*1000 + 12
	for interval := 0; interval < 30; interval++ {
		end := at + 1000 + noise.Int63n(5)
		for count := 150 + noise.Intn(100); count > 0; count-- {
			service := int64(math.Exp(noise.NormFloat64()*0.8+13)) / unit
			response := service + int64(noise.ExpFloat64()*200000)/unit
			op := []string{"-read", "-write"}[noise.Intn(2)]
			for tag, value := range map[string]int64{"raw": service, "co-fixed": response} {
				check(found[tag].RecordValue(value))
				if split, there := found[tag+op]; there {
					check(split.RecordValue(value))
				}
			}
		}
		from, to := at, end
		if os.Args[2] == "seconds" {
			from, to = at/1000, end/1000
		}
		for _, tag := range tags {
			found[tag].SetStartTimeMs(from)
			found[tag].SetEndTimeMs(to)
			check(log.OutputIntervalHistogram(found[tag]))
			found[tag].Reset()
		}
		at = end
	}
	fmt.Println(file.Name())
}
