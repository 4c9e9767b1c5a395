package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/output"
	"github.com/omni-perf/omni-perf/sidecar/torchtrace/synth"
)

func makeTracesCommand() command {
	return command{"make-traces", "write traces of a made-up training run, to try analyze on", func(args []string) int {
		err := makeTraces(args, os.Stdout, os.Stderr)
		var usage usageError
		switch {
		case err == nil, errors.Is(err, flag.ErrHelp):
			return exitOK
		case errors.As(err, &usage):
			fmt.Fprintf(messages, "omni-perf make-traces: %s\n", err)
			return exitUsage
		}
		fmt.Fprintf(messages, "omni-perf make-traces: %s\n", err)
		return exitFailed
	}}
}

// snapshotName is the memory snapshot that make-traces writes beside the traces.
const snapshotName = "memory_snapshot.pickle"

func makeTraces(args []string, stdout, stderr io.Writer) error {
	var cfg synth.Config
	flags := flag.NewFlagSet("make-traces", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Uint64Var(&cfg.Seed, "seed", 1, "the same seed gives the same files")
	flags.IntVar(&cfg.Ranks, "ranks", 8, "how many ranks")
	flags.IntVar(&cfg.Devices, "devices", 1, "how many devices the process of an only rank uses, in turns")
	flags.IntVar(&cfg.Steps, "steps", 6, "how many training steps")
	cycles := flags.Int("cycles", 1, "how many cycles of steps, each in files of its own, as schedule(repeat=…) writes")
	flags.IntVar(&cfg.Layers, "layers", 0, "kernels of a forward pass, 3.5 times as many in a step (default 24, more with a large --size)")
	size := flags.String("size", "", "go on until every rank's JSON has this `SIZE`, as in 500MB or 5GB")
	flags.DurationVar(&cfg.DataWait, "data-wait", 2*time.Millisecond, "mean time a step waits for its batch")
	flags.IntVar(&cfg.Straggler, "straggler", 5, "the rank that comes late")
	flags.DurationVar(&cfg.StragglerDelay, "delay", 4*time.Millisecond, "how late it comes")
	flags.DurationVar(&cfg.ClockSkew, "skew", 3*time.Millisecond, "how far clocks are off at most")
	flags.BoolVar(&cfg.Stacks, "stacks", true, "record Python stacks")
	flags.BoolVar(&cfg.Memory, "memory", true, "record memory changes")
	plain := flags.Bool("plain", false, "do not compress")
	answers := flags.String("answers", "", "write what an analysis must find in the last cycle as JSON to `FILE`")
	const about = "usage: omni-perf make-traces DIR [options]\n\n"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		args = append(args[1:len(args):len(args)], args[0]) // options first, for package flag
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stderr, about)
		flags.SetOutput(stderr)
		flags.PrintDefaults()
		return err
	} else if err != nil {
		return misuse("%s; see omni-perf make-traces --help", err)
	}
	if flags.NArg() != 1 {
		return misuse("name one folder; see omni-perf make-traces --help")
	}
	var err error
	if cfg.Bytes, err = parseSize(*size); err != nil {
		return err
	}
	dir := flags.Arg(0)
	if cfg.Devices > 1 && !isSet(flags, "ranks") {
		cfg.Ranks = 1
	}
	found := &synth.Answers{}
	for cfg.Cycle = range max(1, *cycles) {
		if found, err = synth.WriteDir(cfg, dir, !*plain); err != nil {
			return err
		}
	}
	if err := synth.WriteSnapshotFile(cfg, filepath.Join(dir, snapshotName)); err != nil {
		return err
	}
	if *answers != "" {
		if err := writeAnswers(*answers, found); err != nil {
			return err
		}
	}
	ranks := "1 rank"
	if n := len(found.Ranks); n > 1 {
		ranks = fmt.Sprintf("%d ranks", n)
	}
	fmt.Fprintf(stdout, "%s and %s in %s\n", ranks, snapshotName, dir)
	return nil
}

func isSet(flags *flag.FlagSet, name string) (set bool) {
	flags.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

func writeAnswers(path string, found *synth.Answers) error {
	text, err := json.MarshalIndent(found, "", " ")
	if err != nil {
		return fmt.Errorf("writing the answers: %w", err)
	}
	return output.WriteBytes(path, append(text, '\n'))
}

// parseSize reads "500MB"; "" is 0.
func parseSize(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	number, unit := strings.ToUpper(text), int64(1)
	for suffix, factor := range map[string]int64{"KB": 1e3, "MB": 1e6, "GB": 1e9} {
		if cut, ok := strings.CutSuffix(number, suffix); ok {
			number, unit = cut, factor
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || n <= 0 {
		return 0, misuse("--size: %q is no size such as 500MB or 5GB", text)
	}
	return int64(n * float64(unit)), nil
}
