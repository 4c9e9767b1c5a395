package diagnose

import (
	"math"
	"math/rand"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/gpuidle"
)

const ms = timeline.Nanos(time.Millisecond)

// cellFile is the file of the simulated cell; its lines are the phases' lines.
const cellFile = "/tmp/ipykernel_1/123.py"

const cellText = `for x, y in loader:
    x = x.to("cuda")
    out = model(x)
    loss = criterion(out, y)
    loss.backward()
    total += loss.item()
    optimizer.step()
    history.append(augment(total))
    torch.save(model.state_dict(), "last.pt")
    time.sleep(1)
`

// phase is a part of a simulated training step.
type phase struct {
	line     int
	library  string // file of a library frame below the cell's, or empty
	function string
	state    timeline.State
	length   timeline.Nanos
	launches float64        // the device's activity while (or lag after) the host is here
	work     timeline.Nanos // queued on the device when the phase begins; used by the queue model
	sync     bool           // waits until the device has nothing left
}

const dataloaderFile = "/usr/lib/python3.12/site-packages/torch/utils/data/dataloader.py"

// trainingStep is 127 ms long, of six host states.
func trainingStep() []phase {
	return []phase{
		{line: 1, library: dataloaderFile, function: "_SingleProcessDataLoaderIter._next_data", state: timeline.StatePython, length: 38 * ms, launches: 0},
		{line: 2, state: timeline.StateNative, length: 9 * ms, launches: 0.15, work: 1 * ms},
		{line: 3, library: "/x/site-packages/torch/nn/modules/module.py", function: "Module._call_impl", state: timeline.StatePython, length: 22 * ms, launches: 0.7, work: 15 * ms},
		{line: 5, library: "/x/site-packages/torch/_tensor.py", function: "Tensor.backward", state: timeline.StateNative, length: 28 * ms, launches: 0.95, work: 30 * ms},
		{line: 6, state: timeline.StateNative, length: 14 * ms, launches: 1, sync: true},
		{line: 8, state: timeline.StatePython, length: 16 * ms, launches: 0.05},
	}
}

// simulation describes a recording whose idle causes are known by construction.
type simulation struct {
	seed       int64
	length     timeline.Nanos
	phases     []phase
	jitter     float64 // of a phase's length, standard deviation as a share
	window     timeline.Nanos
	lag        timeline.Nanos
	lagJitter  timeline.Nanos // half-width of a uniform deviation, drawn per step
	workJitter float64        // of the work queued, as jitter; 0 = jitter
	queue      bool           // the device works off what was launched, in order
	idleTail   timeline.Nanos // nothing measured at the end
	threads    int            // busy threads beside the main one
}

// level is a device's true activity: value from at on.
type level struct {
	at    timeline.Nanos
	value float64
}

// run returns the recording and the true idle time by line.
func (sim simulation) run() (*timeline.Recording, map[int]timeline.Nanos) {
	rng := rand.New(rand.NewSource(sim.seed))
	if sim.workJitter == 0 {
		sim.workJitter = sim.jitter
	}
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	b.Describe(func(r *timeline.Recording) {
		r.Target.PID = 1
		r.Target.Cell = &timeline.Cell{File: cellFile, Text: cellText}
		r.Sources = []timeline.Source{{File: cellFile, Text: cellText}}
		r.GPUs = []timeline.GPU{{Index: 0, PIDs: []int{1}, OtherProcesses: 0}}
	})
	main := b.Thread(timeline.Thread{PID: 1, NativeID: 1, Main: true, RunsCell: true})
	root := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "Kernel.run_cell", File: "/x/site-packages/ipykernel/ipkernel.py", Line: 400}))
	nodes := make([]timeline.NodeID, len(sim.phases))
	for i, p := range sim.phases {
		nodes[i] = b.Child(root, b.Frame(timeline.Frame{Function: "<module>", File: cellFile, Line: p.line}))
		if p.library != "" {
			nodes[i] = b.Child(nodes[i], b.Frame(timeline.Frame{Function: p.function, File: p.library, Line: 7}))
		}
	}
	type hostPhase struct {
		start, end timeline.Nanos
		phase      int
	}
	var hosts []hostPhase
	device := []level{{0, 0}}
	queueEnd := timeline.Nanos(0)
	for t := timeline.Nanos(0); t < sim.length; {
		lag := sim.lag
		if sim.lagJitter > 0 {
			lag += timeline.Nanos((2*rng.Float64() - 1) * float64(sim.lagJitter))
		}
		for i, p := range sim.phases {
			length := timeline.Nanos(float64(p.length) * math.Max(0.1, 1+sim.jitter*rng.NormFloat64()))
			if sim.queue {
				if p.work > 0 {
					start := max(t, queueEnd)
					work := timeline.Nanos(float64(p.work) * math.Max(0.1, 1+sim.workJitter*rng.NormFloat64()))
					device = append(device, level{start, 1}, level{start + work, 0})
					queueEnd = start + work
				}
				if p.sync {
					length = max(queueEnd-t, 0) + ms/2
				}
			} else {
				device = append(device, level{t + lag, p.launches})
			}
			hosts = append(hosts, hostPhase{t, t + length, i})
			b.Set(main, t, nodes[i], p.state, false)
			t += length
		}
	}
	slices.SortStableFunc(device, func(a, b level) int { return int(min(max(a.at-b.at, -1), 1)) })
	for i := range sim.threads {
		id := b.Thread(timeline.Thread{PID: 1, NativeID: 10 + i})
		node := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "worker", File: "/home/u/w.py", Line: i + 1}))
		for t := timeline.Nanos(0); t < sim.length; t += 10 * ms {
			b.Set(id, t, node, timeline.State(int(t/ms/10)%2), false)
		}
	}
	mean := func(from, at timeline.Nanos) float64 {
		i, _ := slices.BinarySearchFunc(device, from, func(a level, t timeline.Nanos) int { return int(min(max(a.at-t, -1), 1)) })
		i = max(i-1, 0)
		for i+1 < len(device) && device[i+1].at <= from {
			i++
		}
		total := 0.0
		for ; i < len(device) && device[i].at < at; i++ {
			end := at
			if i+1 < len(device) {
				end = min(at, device[i+1].at)
			}
			if start := max(device[i].at, from); end > start {
				total += device[i].value * float64(end-start)
			}
		}
		return total / float64(at-from)
	}
	if sim.window > 0 {
		track := b.Track(timeline.TrackSpec{ID: "gpu0.util", Kind: timeline.KindRate, Unit: "%", MaxPoints: 1 << 16, Device: 0})
		for t := timeline.Nanos(0); t+sim.window <= sim.length-sim.idleTail; t += sim.window {
			track.AddWindow(t, t+sim.window, math.Round(100*mean(t, t+sim.window)))
		}
	}
	measured := sim.length - sim.idleTail
	if sim.window > 0 {
		measured -= measured % sim.window
	}
	truth := make(map[int]timeline.Nanos)
	for _, h := range hosts {
		if h.start < measured {
			end := min(h.end, measured)
			truth[sim.phases[h.phase].line] += timeline.Nanos(float64(end-h.start) * (1 - mean(h.start, end)))
		}
	}
	return b.Snapshot(sim.length), truth
}

// byLine sums a device's causes up by line.
func byLine(causes []gpuidle.CauseTime) map[int]timeline.Nanos {
	sums := make(map[int]timeline.Nanos)
	for _, c := range causes {
		sums[c.Place.Line] += c.Nanos
	}
	return sums
}

// largestError returns the largest deviation of any line's share, in points of
// the idle time.
func largestError(got, truth map[int]timeline.Nanos) float64 {
	total := 0.0
	for _, n := range truth {
		total += float64(n)
	}
	worst := 0.0
	for l := range truth {
		worst = math.Max(worst, math.Abs(float64(got[l]-truth[l]))/total*100)
	}
	for l, n := range got {
		if _, ok := truth[l]; !ok {
			worst = math.Max(worst, float64(n)/total*100)
		}
	}
	return worst
}
