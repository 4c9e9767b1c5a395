package recorder

import (
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

const (
	// maxPushed bounds what is interned of the fallback sampler's frames and stacks
	// in a session; the kernel's own tables are of the same size.
	maxPushed = 1 << 16
	// maxLanes bounds the threads of a run: a program may make a new one each second.
	maxLanes = 4096
)

// Samples are stacks taken inside the kernel. Frames and stacks are named by
// numbers that the kernel chose for the session and sent once.
type Samples struct {
	Frames  map[uint32]timeline.Frame
	Stacks  map[uint32][]uint32 // frames, root first
	Threads []PushedThread      // those that are new or renamed
	Ticks   []Tick              // in order of time
	CPU     timeline.Nanos      // what the sampling has cost so far in this run
}

// PushedThread names a thread of the target.
type PushedThread struct {
	ID   int
	Name string
	Main bool
}

// Tick is one look at all threads.
type Tick struct {
	At     int64          // CLOCK_MONOTONIC
	Stacks map[int]uint32 // by native thread id
}

// fallback is what the kernel has interned so far.
type fallback struct {
	frames  map[uint32]timeline.Frame
	stacks  map[uint32][]uint32
	threads map[int]PushedThread
}

// pushState is the fallback sampler's part of a run.
type pushState struct {
	nodes   map[uint32]timeline.NodeID
	threads map[int]*pushedLane
	samples int64
	first   int64 // time of the first tick, CLOCK_MONOTONIC
	last    int64
}

// describe reports the interval that the in-kernel sampler kept: it waits for the
// GIL at each tick, so what was asked for says little.
func (p *pushState) describe(rec *timeline.Recording) {
	if p.samples < 2 || p.last <= p.first {
		return
	}
	rec.Sampling.Interval = time.Duration((p.last - p.first) / (p.samples - 1))
	rec.Resolution = max(rec.Resolution, rec.Sampling.Interval)
}

type pushedLane struct {
	id    timeline.ThreadID
	alive bool
}

const fallbackMethod = timeline.MethodInside

// Push adds samples of the in-kernel sampler to the run in progress; without one
// only what they intern is kept.
func (r *Recorder) Push(s Samples) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fallback.intern(s)
	if r.run == nil {
		return
	}
	b, p := r.run.Builder, &r.run.push
	if p.threads == nil {
		p.threads = make(map[int]*pushedLane)
		p.nodes = make(map[uint32]timeline.NodeID)
	}
	if r.opts.Threads != nil {
		r.opts.Threads.Read() // the latest samples lie after the last reading
	}
	for _, tick := range s.Ticks {
		at := b.Since(tick.At)
		for tid, lane := range p.threads {
			if _, ok := tick.Stacks[tid]; lane.alive && !ok {
				b.End(lane.id, at)
				lane.alive = false
			}
		}
		for tid, stack := range tick.Stacks {
			lane := r.laneLocked(tid)
			if lane == nil {
				continue
			}
			lane.alive = true
			b.Set(lane.id, at, r.nodeLocked(stack), r.stateLocked(tid, tick.At), false)
		}
		if p.samples == 0 {
			p.first = tick.At
		}
		p.last = tick.At
		p.samples++
	}
	reason := "the fallback sampler was asked for"
	if r.denied != nil {
		reason = r.denied.Error()
	}
	b.Describe(func(rec *timeline.Recording) {
		rec.Sampling.Method = fallbackMethod
		rec.Sampling.FallbackReason = reason
		rec.Sampling.Samples = p.samples
		rec.Sampling.CPU = s.CPU
	})
}

func (f *fallback) intern(s Samples) {
	if f.frames == nil {
		f.frames = make(map[uint32]timeline.Frame)
		f.stacks = make(map[uint32][]uint32)
		f.threads = make(map[int]PushedThread)
	}
	for id, frame := range s.Frames {
		if len(f.frames) < maxPushed {
			f.frames[id] = frame
		}
	}
	for id, stack := range s.Stacks {
		if len(f.stacks) < maxPushed {
			f.stacks[id] = stack
		}
	}
	for _, t := range s.Threads {
		if len(f.threads) < maxPushed {
			f.threads[t.ID] = t
		}
	}
}

// laneLocked finds the thread's lane; nil when there are too many.
func (r *Recorder) laneLocked(tid int) *pushedLane {
	p := &r.run.push
	if lane := p.threads[tid]; lane != nil {
		return lane
	}
	if len(p.threads) >= maxLanes {
		r.run.Builder.Note(timeline.NoteLeftOut, "threads", "more of them were seen than are kept; later ones are left out")
		return nil
	}
	known := r.fallback.threads[tid]
	lane := &pushedLane{}
	lane.id = r.run.Builder.Thread(timeline.Thread{
		PID: r.opts.Target.PID, NativeID: tid, Name: known.Name, Main: known.Main, OnCPU: -1,
	})
	p.threads[tid] = lane
	return lane
}

// nodeLocked finds the stack of that number in the run's tree.
func (r *Recorder) nodeLocked(stack uint32) timeline.NodeID {
	p, b := &r.run.push, r.run.Builder
	node, ok := p.nodes[stack]
	if !ok {
		for _, f := range r.fallback.stacks[stack] {
			frame, ok := r.fallback.frames[f]
			if !ok {
				frame = timeline.Frame{Function: "(not kept: too many functions)"}
			}
			node = b.Child(node, b.Frame(frame))
		}
		p.nodes[stack] = node
	}
	return node
}

// stateLocked is what the thread did at the time; its frames alone do not say
// whether it ran or waited.
func (r *Recorder) stateLocked(tid int, at int64) timeline.State {
	if r.opts.Threads == nil {
		return timeline.StateUnknown
	}
	state, ok := r.opts.Threads.State(tid, at)
	if !ok {
		return timeline.StateUnknown
	}
	return state
}
