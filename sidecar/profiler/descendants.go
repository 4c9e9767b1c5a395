package profiler

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/host"
	"github.com/omni-perf/omni-perf/sidecar/procfs"
	"github.com/omni-perf/omni-perf/sidecar/proctree"
	"github.com/omni-perf/omni-perf/sidecar/pystack"
	"github.com/omni-perf/omni-perf/sidecar/recorder"
	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// marksOf are variables that tell a process which the target, or a descendant of it,
// has started: where `omni-perf run` did, its own; where a Jupyter server did, those
// of the kernel's session.
func marksOf(pid int) (marks []string) {
	fs := procfs.New("/proc")
	var session, parent string
	for _, variable := range fs.Environment(pid) {
		switch name, _, _ := strings.Cut(variable, "="); name {
		case "OMNI_PERF_RUN":
			return []string{variable}
		case "JPY_SESSION_NAME":
			session = variable
		case "JPY_PARENT_PID":
			parent = variable
		}
	}
	if session != "" && parent != "" {
		return []string{session, parent}
	}
	return nil
}

// descendants watches the tree of the target's processes and reads the stacks of those
// that run Python.
type descendants struct {
	root   int
	target func() *pystack.Process // the target's; nil while there is none

	mu        sync.Mutex
	processes map[proctree.Identity]*pystack.Process // they outlive a run, as a pool outlives a cell
}

func newDescendants(root int, target func() *pystack.Process) *descendants {
	return &descendants{root: root, target: target, processes: make(map[proctree.Identity]*pystack.Process)}
}

func (d *descendants) Collect(ctx context.Context, run recorder.Run) error {
	tree := treeOf(run)
	if tree == nil {
		return nil
	}
	d.forgetDead()
	w := &watch{
		d: d, run: run, tree: tree, sampler: pystack.NewSampler(run.Builder, pystack.SamplerOptions{Interval: run.Interval}),
		images: make(map[proctree.Image]*pystack.Process), living: make(map[proctree.Identity]proctree.Member),
		wake: make(chan struct{}, 1),
	}
	var running sync.WaitGroup
	if run.Children == recorder.ChildrenStacks {
		running.Go(func() { w.sampler.Run(ctx) })
		running.Go(func() { w.attach(ctx) })
	}
	err := tree.Watch(ctx, w)
	running.Wait()
	if _, alive := host.ProcessStart(d.root); !alive {
		return nil // it has ended, and so does the recording: nothing is missing
	}
	return err
}

// forgetDead lets go of processes that have ended since the last run.
func (d *descendants) forgetDead() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, p := range d.processes {
		if start, alive := host.ProcessStart(id.PID); !alive || start != id.Start {
			p.Close()
			delete(d.processes, id)
		}
	}
}

func (d *descendants) get(id proctree.Identity) *pystack.Process {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.processes[id]
}

// put keeps a process; false if another attempt was first.
func (d *descendants) put(id proctree.Identity, p *pystack.Process) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known := d.processes[id]; known != nil && known != p {
		return false
	}
	d.processes[id] = p
	return true
}

func (d *descendants) take(id proctree.Identity) *pystack.Process {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.processes[id]
	delete(d.processes, id)
	return p
}

// watch is one run: it hears of processes that start and end, attaches to those that
// run Python, and hands them to the sampler.
type watch struct {
	d       *descendants
	run     recorder.Run
	tree    *proctree.Tree
	sampler *pystack.Sampler

	mu     sync.Mutex
	images map[proctree.Image]*pystack.Process // who runs a program that others were forked with
	living map[proctree.Identity]proctree.Member
	queue  []attempt
	wake   chan struct{}
}

// attempt is a process that is to be attached to.
type attempt struct {
	member proctree.Member
	due    time.Time
	pause  time.Duration // before the next attempt
	until  time.Time     // when it is given up as none that runs Python
}

const (
	// startUp is how long an interpreter takes at least until it runs code: looking
	// earlier is of no use.
	startUp = 15 * time.Millisecond
	// unlikely is how long a program must have run that is not called Python, to be
	// looked at in case it is one all the same.
	unlikely = 500 * time.Millisecond
	// pythonPatience is how long a process called Python may take to become one.
	pythonPatience = 10 * time.Second
	attachPause    = 50 * time.Millisecond // the longest between two attempts
	// attachShare is what attaching may cost, as a share of a core, once attachBurst is
	// used up: programs that start ever new interpreters must not pay for it.
	attachShare = 0.02
	attachBurst = 150 * time.Millisecond
)

func (w *watch) Started(m proctree.Member) {
	if m.PID == w.d.root {
		return // pythonStacks reads it
	}
	w.mu.Lock()
	again := w.living[m.Identity]
	w.living[m.Identity] = m
	w.mu.Unlock()
	switch {
	case m.Index < 0:
		return
	case w.run.Children != recorder.ChildrenStacks:
		w.refuse(m, timeline.StacksNotAsked, "")
		return
	case again.PID != 0: // it has executed another program
		w.drop(m.Identity)
	}
	if p := w.d.get(m.Identity); p != nil { // since an earlier run
		w.join(m, p)
		return
	}
	if from := w.forkedFrom(m); from != nil {
		w.fork(from, m)
		return
	}
	first := attempt{member: m, due: time.Now().Add(startUp), pause: startUp, until: time.Now().Add(pythonPatience)}
	if !m.Python {
		w.refuse(m, timeline.StacksNotPython, "")
		first.due = time.Now().Add(unlikely)
		first.until = first.due
	}
	w.enqueue(first)
}

func (w *watch) Ended(m proctree.Member) {
	w.mu.Lock()
	delete(w.living, m.Identity)
	w.mu.Unlock()
	w.drop(m.Identity)
	b := w.run.Builder
	b.EndGap(m.PID, b.Since(timeline.Monotonic()))
	b.Describe(func(r *timeline.Recording) {
		if m.Index > 0 && m.Index < len(r.Processes) && r.Processes[m.Index].Stacks.Reason == timeline.StacksUnknown {
			r.Processes[m.Index].Stacks.Reason = timeline.StacksTooShort
		}
	})
}

// drop lets go of a process that has ended, or runs another program.
func (w *watch) drop(id proctree.Identity) {
	if p := w.d.take(id); p != nil {
		w.sampler.Remove(p, p.Close)
	}
}

// forkedFrom is a process whose program m runs on in; nil: none is known.
func (w *watch) forkedFrom(m proctree.Member) *pystack.Process {
	if m.Image == (proctree.Image{}) {
		return nil
	}
	w.mu.Lock()
	from := w.images[m.Image]
	w.mu.Unlock()
	if target := w.d.target(); from == nil && target != nil && w.tree.Image(w.d.root) == m.Image {
		return target
	}
	return from
}

func (w *watch) fork(from *pystack.Process, m proctree.Member) {
	w.sampler.Fork(from, m.PID, m.Index, func(p *pystack.Process, err error) {
		switch {
		case err == nil:
			w.d.put(m.Identity, p)
		case w.lives(m.Identity): // by the long way then
			w.enqueue(attempt{member: m, due: time.Now(), pause: startUp, until: time.Now().Add(pythonPatience)})
		}
	}, func(err error) { w.lost(m, err) })
}

// join samples a process that is attached to.
func (w *watch) join(m proctree.Member, p *pystack.Process) {
	if !w.d.put(m.Identity, p) {
		p.Close()
		return
	}
	w.mu.Lock()
	if m.Image != (proctree.Image{}) {
		w.images[m.Image] = p
	}
	w.mu.Unlock()
	w.sampler.Add(p, m.Index, func(err error) { w.lost(m, err) })
}

// lost takes note of a process that can no longer be read. From the sampler.
func (w *watch) lost(m proctree.Member, err error) {
	if p := w.d.take(m.Identity); p != nil {
		p.Close()
	}
	if errors.Is(err, pystack.ErrPermission) {
		w.refuse(m, timeline.StacksDenied, err.Error())
	}
	if w.lives(m.Identity) { // it may have executed another program: look again
		w.enqueue(attempt{member: m, due: time.Now().Add(attachPause), pause: attachPause, until: time.Now().Add(pythonPatience)})
	}
}

func (w *watch) lives(id proctree.Identity) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.living[id]
	return ok
}

// enqueue replaces an attempt at the same process, which ran another program then.
func (w *watch) enqueue(a attempt) {
	w.mu.Lock()
	w.queue = slices.DeleteFunc(w.queue, func(old attempt) bool { return old.member.Identity == a.member.Identity })
	w.queue = append(w.queue, a)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// next takes the attempt that is due, or tells how long there is none.
func (w *watch) next() (a attempt, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = slices.DeleteFunc(w.queue, func(a attempt) bool { _, lives := w.living[a.member.Identity]; return !lives })
	if len(w.queue) == 0 {
		return a, time.Hour
	}
	first := 0
	for i := range w.queue {
		if w.queue[i].due.Before(w.queue[first].due) {
			first = i
		}
	}
	if wait := time.Until(w.queue[first].due); wait > 0 {
		return a, wait
	}
	a = w.queue[first]
	w.queue = slices.Delete(w.queue, first, first+1)
	return a, 0
}

// attach makes the attempts that are due, at a cost that is bounded.
func (w *watch) attach(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	left, at := attachBurst, time.Now()
	for ctx.Err() == nil {
		a, wait := w.next()
		now := time.Now()
		left = min(left+time.Duration(attachShare*float64(now.Sub(at))), attachBurst)
		at = now
		if wait == 0 && left < 0 {
			w.enqueue(a)
			wait = time.Duration(float64(-left) / attachShare)
		}
		if wait > 0 {
			timer.Reset(wait)
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			case <-w.wake:
				if left < 0 { // whoever came has to wait, too
					time.Sleep(min(wait, attachPause))
				}
			}
			continue
		}
		start := time.Now()
		w.try(a)
		left -= time.Since(start)
	}
}

// try attaches to a process, now or later.
func (w *watch) try(a attempt) {
	m := a.member
	if w.d.get(m.Identity) != nil {
		return
	}
	if from := w.forkedFrom(m); from != nil { // found meanwhile
		w.fork(from, m)
		return
	}
	p, err := pystack.Attach(m.PID, pystack.Options{})
	reason := timeline.StacksFailed
	switch {
	case err == nil:
		if !w.lives(m.Identity) {
			p.Close()
			return
		}
		w.join(m, p)
		return
	case errors.Is(err, pystack.ErrGone):
		return
	case errors.Is(err, pystack.ErrPermission):
		reason = timeline.StacksDenied
	case errors.Is(err, pystack.ErrUnsupported), errors.Is(err, pystack.ErrFreeThreaded):
		reason = timeline.StacksUnsupported
	case errors.Is(err, pystack.ErrNotPython):
		reason = timeline.StacksNotPython
	}
	if reason != timeline.StacksNotPython || m.Python {
		w.refuse(m, reason, err.Error())
	}
	if time.Now().After(a.until) {
		return
	}
	// One that is being set up looks like one that nobody knows.
	a.due, a.pause = time.Now().Add(a.pause), min(2*a.pause, attachPause*20)
	w.enqueue(a)
}

// refuse notes why a process's stacks are not read, so far.
func (w *watch) refuse(m proctree.Member, reason timeline.NoStacks, detail string) {
	w.run.Builder.Describe(func(r *timeline.Recording) {
		if m.Index < len(r.Processes) {
			r.Processes[m.Index].Stacks.Reason, r.Processes[m.Index].Stacks.Detail = reason, detail
		}
	})
}
