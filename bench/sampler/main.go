// Sampler measures omni-perf's stack sampler beside its peers, on this machine, in one run:
//
//	go run ./bench/sampler            all of it, about an hour, to docs/benchmarks.md
//	go run ./bench/sampler -quick     a rough look in under two minutes, to standard output
//
// The peers are installed into .cache/bench by the first run. What cannot be installed is listed with the
// reason. The figures are kept beside (-data), so that the page can be written again from them (-from).
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "sample" {
		exit(sampleOurs(os.Args[2:]))
	}
	exit(run())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/sampler:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Plan is what is measured and how long; see its flags.
type Plan struct {
	Pairs    int
	Run      time.Duration
	Accuracy time.Duration
	Shares   time.Duration
	Samplers *regexp.Regexp
	Axes     *regexp.Regexp
	Programs *regexp.Regexp
	Versions bool
}

// quick is the plan of -quick: one program alone and one with many threads, a few workloads.
var quick = Plan{
	Pairs:    3,
	Run:      300 * time.Millisecond,
	Accuracy: time.Second,
	Shares:   3 * time.Second,
	Samplers: regexp.MustCompile("^(omni-perf|py-spy|Austin|bare C loop)$"),
	Axes:     regexp.MustCompile(""),
	Programs: regexp.MustCompile("^(richards|160 threads|work|flat|generators 20 µs|parts)$"),
}

func run() error {
	var plan Plan
	var samplers, axes, programs string
	flag.IntVar(&plan.Pairs, "pairs", 30, "interleaved pairs for each program and sampler")
	flag.DurationVar(&plan.Run, "run", 500*time.Millisecond, "length of each of a pair's runs")
	flag.DurationVar(&plan.Accuracy, "accuracy", 10*time.Second, "sampling time for each accuracy workload, whole seconds")
	flag.DurationVar(&plan.Shares, "shares", 60*time.Second, "sampling time for the time shares, whole seconds")
	flag.StringVar(&samplers, "samplers", "", "only samplers whose name matches this regular expression (omni-perf and the bare C loop are always there)")
	flag.StringVar(&axes, "axes", "", "only axes that match: turns, slowdown, accuracy, rate")
	flag.StringVar(&programs, "programs", "", "only programs and workloads whose name matches")
	flag.BoolVar(&plan.Versions, "versions", true, "also the accuracy of omni-perf on every interpreter there is")
	limit := flag.Duration("limit", 0, "end after this time, with fewer pairs; 0 is no limit")
	isQuick := flag.Bool("quick", false, "a rough look in under two minutes, to standard output")
	cache := flag.String("cache", ".cache/bench", "folder that the peers are installed into")
	page := flag.String("o", "docs/benchmarks.md", "page to write; - is standard output")
	data := flag.String("data", "build/bench/sampler.json", "file to keep the figures in")
	from := flag.String("from", "", "measure nothing, write the page from these files of figures, with commas between")
	flag.Parse()

	if *from != "" {
		var all []*Results
		for path := range strings.SplitSeq(*from, ",") {
			results, err := loadResults(path)
			if err != nil {
				return err
			}
			all = append(all, results)
		}
		return writePage(*page, joined(all))
	}
	var err error
	if plan.Samplers, err = regexp.Compile(samplers); err != nil {
		return err
	}
	if plan.Axes, err = regexp.Compile(axes); err != nil {
		return err
	}
	if plan.Programs, err = regexp.Compile(programs); err != nil {
		return err
	}
	if *isQuick {
		plan, *page, *data, *limit = quick, "-", "", 110*time.Second
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *limit)
		defer cancel()
	}
	results, err := measure(ctx, plan, *cache)
	if err != nil {
		return err
	}
	results.Command = "go run ./bench/sampler " + strings.Join(os.Args[1:], " ")
	if *data != "" {
		if err := saveResults(*data, results); err != nil {
			return err
		}
	}
	return writePage(*page, results)
}

func writePage(path string, results *Results) error {
	page := document(results)
	if path == "-" {
		_, err := os.Stdout.WriteString(page)
		return err
	}
	return os.WriteFile(path, []byte(page), 0o644)
}

func saveResults(path string, results *Results) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(results, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

func loadResults(path string) (*Results, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var results Results
	if err := json.Unmarshal(text, &results); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &results, nil
}
