// Package peer knows the samplers that omni-perf's is measured beside: how each is installed into a
// folder, how it is made to sample a process, and how its output is read. In flow a folder and
// interpreters, out flow Samplers, ready to use, and the reasons for those that are missing. It does
// not know what is measured.
package peer

import (
	"fmt"
	"os/exec"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// A Sampler is one way to sample a Python process.
type Sampler struct {
	Name    string // "py-spy --nonblocking"
	Version string
	Target  truth.Interpreter // what its targets are run with

	// Ready reports whether a sampler has done its own start; nil if that is quick. Settle is the time from then
	// to the first sample, at most.
	Ready  func(pid int) bool
	Settle time.Duration

	// Wrap is set for a sampler that runs inside the target: the arguments before the script.
	Wrap func(Job) []string
	// Command is set for all others.
	Command func(Job) *exec.Cmd
	// Read reads the output file; log is what the sampler printed. Nil if it writes none.
	Read func(out, log string) (Recording, error)
}

// Inside reports whether the sampler runs in the target's process.
func (s Sampler) Inside() bool { return s.Wrap != nil }

// A Job is what a sampler is to do, until an interrupt (SIGINT) or its target's end: a duration would
// be counted in samples by some, which is longer where they fall behind. All threads are sampled, idle ones too.
type Job struct {
	Pid  int     // 0 if the sampler runs inside
	Rate float64 // samples per second; 0 is as fast as it can
	Out  string  // file to write
	// ByState has ours write the times that its timeline has, in which states have the time that the
	// scheduler counts. The peers know no such thing.
	ByState bool
}

// A Recording is a sampler's output.
type Recording struct {
	Samples []truth.Sample // one for each thread each time
	Failed  int            // times it tried to sample and got nothing, by its own word
	Time    time.Duration  // that it sampled, by its own word; 0 if it does not say
	Ticks   int            // times it sampled, by its own word, those that failed too; 0 if it does not say
}

// mostSamples is more than any recording here has; an output that claims more is not believed.
const mostSamples = 20_000_000

// repeat adds a sample count times.
func (r *Recording) repeat(s truth.Sample, count float64) error {
	if !(count >= 0) || float64(len(r.Samples))+count > mostSamples {
		return fmt.Errorf("a stack with %v samples", count)
	}
	r.Samples = append(r.Samples, slices.Repeat([]truth.Sample{s}, int(count))...)
	return nil
}

// Missing is a sampler that cannot be had here.
type Missing struct {
	Name, Reason string
}
