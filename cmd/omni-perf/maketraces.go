package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/omni-perf/omni-perf/sidecar/traces/synth"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

func makeTracesCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "make-traces FOLDER [options]",
		Short: "write traces of a made-up training run, to try analyze on",
		Args:  exactly("one folder"),
	}
	var f synth.Folder
	flags := c.Flags()
	flags.Uint64Var(&f.Seed, "seed", 1, "the same `NUMBER` gives the same files")
	flags.IntVar(&f.Ranks, "ranks", 8, "`NUMBER` of ranks")
	flags.IntVar(&f.Devices, "devices", 1, "`NUMBER` of devices that one rank's process uses in turns")
	flags.IntVar(&f.Steps, "steps", 6, "`NUMBER` of training steps")
	flags.IntVar(&f.Cycles, "cycles", 1, "`NUMBER` of cycles of steps, each in files of its own, as schedule(repeat=…) writes")
	flags.IntVar(&f.Layers, "layers", 0, "`NUMBER` of kernels of a forward pass, 3.5 times as many in a step (default 24, more with a large --size)")
	flags.Var(sizeValue{&f.Bytes}, "size", "go on until every rank's JSON has this `SIZE`, as in 500MB or 5GB")
	flags.DurationVar(&f.DataWait, "data-wait", 2*time.Millisecond, "mean `DURATION` a step waits for its batch")
	flags.IntVar(&f.Straggler, "straggler", 5, "the `RANK` that comes late")
	flags.DurationVar(&f.StragglerDelay, "delay", 4*time.Millisecond, "`DURATION` by which it comes late")
	flags.DurationVar(&f.ClockSkew, "skew", 3*time.Millisecond, "`DURATION` by which clocks are off at most")
	flags.BoolVar(&f.Stacks, "stacks", true, "record Python stacks; --stacks=false: do not")
	flags.BoolVar(&f.Memory, "memory", true, "record memory changes; --memory=false: do not")
	flags.BoolVar(&f.Plain, "plain", false, "do not compress")
	flags.StringVar(&f.Answers, "answers", "", "write what an analysis must find in the last cycle as JSON to `FILE`")
	c.RunE = func(_ *cobra.Command, args []string) error {
		f.Path = args[0]
		if f.Devices > 1 && !flags.Changed("ranks") {
			f.Ranks = 1
		}
		found, err := synth.WriteFolder(f)
		if err == nil {
			fmt.Fprintf(os.Stdout, "%s and %s in %s\n", words.Plural(len(found.Ranks), "rank", "ranks"), synth.SnapshotName, plain(f.Path))
		}
		return err
	}
	return c
}

// sizeValue is an option such as 500MB.
type sizeValue struct{ to *int64 }

func (sizeValue) Type() string   { return "SIZE" }
func (sizeValue) String() string { return "" }
func (s sizeValue) Set(text string) error {
	number, unit := strings.ToUpper(text), int64(1)
	for suffix, factor := range map[string]int64{"KB": 1e3, "MB": 1e6, "GB": 1e9} {
		if cut, ok := strings.CutSuffix(number, suffix); ok {
			number, unit = cut, factor
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || n <= 0 {
		return fmt.Errorf("%q is no size such as 500MB or 5GB", text)
	}
	*s.to = int64(n * float64(unit))
	return nil
}
