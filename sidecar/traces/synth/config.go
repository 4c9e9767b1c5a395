// Package synth writes Kineto traces of a made-up training run whose answers
// are known: it simulates hosts, devices and collectives of all ranks together
// and counts idle time, overlap, waits and launch delays while it goes, so that
// no analysis is needed to know what one must find.
//
// In flows a Config, out flow one JSON document per rank, streamed, of any
// size, and Answers. The same Config gives the same bytes.
package synth

import "time"

// Config describes the run. The zero value is one rank, six small steps.
type Config struct {
	Seed  uint64
	Ranks int // 0 = 1
	// Devices is how many devices the process of the only rank uses: the layers
	// are divided between them and run one after the other, so that each device
	// waits for the others. 0 = 1.
	Devices int
	// Cycle is which cycle of schedule(repeat=…) the files are of: later ones
	// begin later, and their steps go on counting.
	Cycle int
	Steps int // 0 = 6
	// Bytes, when set, is what every rank's JSON must reach: steps go on until
	// then and Steps is the least number of them.
	Bytes int64

	// Layers is how many kernels a forward pass launches; the backward pass
	// launches twice and the optimizer half as many. 0 = 24, more where Bytes
	// is large: real traces have few steps, large ones have large steps.
	Layers int
	// Kernel is the mean duration of a compute kernel. 0 = 60 µs.
	Kernel time.Duration
	// DataWait is the mean time a step waits for its batch. 0 = 2 ms.
	DataWait time.Duration

	// Straggler is the rank that comes StragglerDelay late to the first
	// collective of each step, because its batch does.
	Straggler      int
	StragglerDelay time.Duration
	// ClockSkew bounds how far a rank's clock is off the common one.
	ClockSkew time.Duration

	Stacks bool // python_function records, as with_stack=True writes them
	Memory bool // [memory] records, as profile_memory=True writes them
}

func (c Config) withDefaults() Config {
	if c.Ranks <= 0 {
		c.Ranks = 1
	}
	if c.Devices <= 0 {
		c.Devices = 1
	}
	if c.Steps <= 0 {
		c.Steps = 6
	}
	if c.Layers <= 0 {
		const perLayer = 5000 // bytes of a step's JSON, about
		c.Layers = min(max(24, int(c.Bytes/perLayer/100)), 20_000)
	}
	if c.Kernel <= 0 {
		c.Kernel = 60 * time.Microsecond
	}
	if c.DataWait <= 0 {
		c.DataWait = 2 * time.Millisecond
	}
	return c
}

// FirstStep is the number of the first ProfilerStep: a schedule with wait and
// warm-up does not start at zero.
func (c Config) FirstStep() int { return waitAndWarmUp + c.Cycle*(waitAndWarmUp+c.Steps) }

const waitAndWarmUp = 3
