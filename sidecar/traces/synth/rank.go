package synth

import (
	"fmt"
	"io"
	"math/rand/v2"
)

// Streams as PyTorch numbers them: the default one and NCCL's.
const (
	computeStream = 7
	commStream    = 20
)

// rank is the state of one simulated process: a host clock that launches, and
// two streams that run what was launched. Times are on the common clock.
type rank struct {
	cfg    Config
	rank   int
	random *rand.Rand
	out    *traceWriter

	host        int64 // when the host thread is free
	thread      int64 // tid that launches now: main, or autograd in backward
	correlation int64
	external    int64

	device int64                // that work goes to now
	ends   map[streamName]int64 // latest end per stream
	first  int64                // start of the first device event
	last   int64                // end of the last
	comm   []interval           // this step's collectives
	after  int64                // the next work is not to start before: another device's part
	// pending is the collective launched but not yet ended.
	pending launch

	mem     allocator
	python  pythonStack
	current Step
	steps   []Step
	totals  Totals
	kept    Totals // before the current step
}

type interval struct{ start, end int64 }

func (i interval) overlap(other interval) int64 {
	return max(0, min(i.end, other.end)-max(i.start, other.start))
}

// streamName names a stream.
type streamName struct{ device, stream int64 }

// launch is a runtime call and what names its device event.
type launch struct {
	callStart, callEnd    int64
	correlation, external int64
	queueDelay            int64 // between the previous event's end and this start, at least
	elements              int64 // of a collective
}

func newRank(cfg Config, number int, w io.Writer) *rank {
	r := &rank{
		cfg: cfg, rank: number,
		random: rand.New(rand.NewPCG(cfg.Seed, uint64(number)+uint64(cfg.Cycle)<<16)),
		ends:   map[streamName]int64{},
		totals: newTotals(),
		kept:   newTotals(),
		first:  -1,
	}
	var skew int64
	if s := int64(cfg.ClockSkew); s > 0 && number > 0 {
		skew = r.random.Int64N(2*s+1) - s
	}
	r.out = newTraceWriter(w, cfg, number, skew)
	r.device = r.out.gpu
	r.host = start + int64(cfg.Cycle)*betweenCycles + r.between(0, 200*us)
	r.thread = r.out.pid
	r.python.init(r)
	return r
}

func (r *rank) between(low, high int64) int64 { return low + r.random.Int64N(high-low+1) }

// around is a duration near mean: from a quarter of it to thrice.
func (r *rank) around(mean int64) int64 {
	f := r.random.Float64()
	return max(us, int64(float64(mean)*(0.25+2.75*f*f)))
}

func (r *rank) beginStep(number int) {
	r.kept = r.totals.clone()
	r.comm = r.comm[:0]
	r.current = Step{Number: number, Start: r.host, FirstWork: -1}
	r.python.push("train.py(42): train_step")
}

// loadBatch waits for the loader and copies the batch to the device.
func (r *rank) loadBatch() {
	begin := r.host
	wait := r.around(int64(r.cfg.DataWait))
	if r.rank == r.cfg.Straggler {
		wait += int64(r.cfg.StragglerDelay)
	}
	r.python.push("torch/utils/data/dataloader.py(701): __next__")
	r.host += wait
	r.out.annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", r.thread, begin, r.host)
	r.current.DataWait = wait
	r.python.pop()
	r.host += 10 * us
	r.deviceWork(work{op: "aten::copy_", call: "cudaMemcpyAsync", kernel: hostToDevice, dur: r.between(80*us, 200*us), bytes: 6_000_000})
}

func (r *rank) forward(kernels int) {
	r.python.push("model.py(17): forward")
	for i := range kernels {
		if r.random.IntN(16) == 0 {
			// Python between two launches, long enough to drain the queue.
			r.python.push("tokens.py(8): encode")
			r.host += r.between(150*us, 500*us)
			r.python.pop()
		}
		r.mem.alloc(r, int64(1+i%8)<<20)
		r.turn(i, kernels)
		r.deviceWork(r.compute(i, forwardOps))
	}
	r.python.pop()
}

// turn chooses the device of the i-th of n kernels: each device has a part of the
// model, and begins when the one before it has finished.
func (r *rank) turn(i, n int) {
	device := int64(i * r.cfg.Devices / max(1, n))
	if r.cfg.Devices == 1 || device == r.device {
		return
	}
	r.after = r.ends[streamName{r.device, computeStream}]
	r.device = device
}

func (r *rank) beginBackward() {
	r.python.push("torch/_tensor.py(525): backward")
	r.thread = r.out.pid + 1
}

func (r *rank) backward(kernels int) {
	for i := range kernels {
		if i%2 == 0 {
			r.mem.free(r)
		}
		r.turn(kernels-1-i, kernels)
		r.deviceWork(r.compute(i, backwardOps))
	}
}

func (r *rank) endBackward() {
	r.thread = r.out.pid
	r.python.pop()
}

func (r *rank) optimizer(kernels int) {
	r.python.push("torch/optim/adam.py(150): step")
	ready := int64(0)
	if n := len(r.comm); n > 0 {
		ready = r.comm[n-1].end + 2*us // cudaStreamWaitEvent on the gradients
	}
	for i := range kernels {
		r.turn(i, kernels)
		w := r.compute(i, optimizerOps)
		w.ready = max(ready, r.after)
		r.after = 0
		r.deviceWork(w)
	}
	r.python.pop()
}

// endStep reads the loss, which waits until the device has finished.
func (r *rank) endStep() {
	r.mem.freeAll(r)
	r.python.push("train.py(55): log_loss")
	begin := r.host
	r.deviceWork(work{op: "aten::_local_scalar_dense", call: "cudaMemcpyAsync", kernel: deviceToHost, dur: r.between(2*us, 4*us), bytes: 4})
	call := r.host
	r.host = max(r.host, r.last) + 6*us
	r.correlation++
	r.out.runtime("cudaStreamSynchronize", r.thread, call, r.host, r.correlation, r.external)
	r.out.op("aten::item", r.thread, begin-us/2, r.host, 0)
	r.totals.Calls["aten::item"]++
	r.python.pop()
	r.host += r.between(5*us, 15*us)
	r.python.pop()
	r.current.End = r.host
	r.current.LastWork = r.last
	r.out.annotation(fmt.Sprintf("ProfilerStep#%d", r.current.Number), r.thread, r.current.Start, r.current.End)
	r.host += r.between(us, 3*us)
	r.steps = append(r.steps, r.out.onFileClock(r.current))
}

func (r *rank) finish() (RankAnswers, error) {
	r.python.close()
	if err := r.out.close(); err != nil {
		return RankAnswers{}, fmt.Errorf("generating the trace of rank %d: %w", r.rank, err)
	}
	kept := r.kept
	if len(r.steps) < 2 { // a single step is never dropped
		kept = r.totals.clone()
	}
	return RankAnswers{
		Rank: r.rank, Skew: r.out.skew, Bytes: r.out.written(), Events: r.out.events,
		Steps: r.steps, Kept: kept, All: r.totals,
	}, nil
}
