package profiler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/procfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/proctree"
	"github.com/omni-perf/omni-perf/sidecar/measure/pystack"
	"github.com/omni-perf/omni-perf/sidecar/measure/pytasks"
	"github.com/omni-perf/omni-perf/sidecar/measure/recorder"
	"github.com/omni-perf/omni-perf/sidecar/measure/spare"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// marksOf are variables that mark a process which the target, or a descendant of it,
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
	root    int
	target  func() *pystack.Process // the target's; nil while there is none
	spare   spare.CPUs
	sharing *pystack.Sharing // with the target

	mu        sync.Mutex
	processes map[proctree.Identity]*pystack.Process // they outlive a run, as a pool outlives a cell
	of        *timeline.Builder                      // of the run in progress …
	read      []pytasks.Source                       // … and what is read for it; replaced when it changes
}

func newDescendants(root int, target func() *pystack.Process, spare spare.CPUs, sharing *pystack.Sharing) *descendants {
	return &descendants{root: root, target: target, spare: spare, sharing: sharing, processes: make(map[proctree.Identity]*pystack.Process)}
}

func (d *descendants) Collect(ctx context.Context, run recorder.Run) error {
	tree := treeOf(run)
	if tree == nil {
		return nil
	}
	d.forgetDead()
	d.begin(run.Builder)
	w := &watch{
		d: d, run: run, tree: tree, sampler: pystack.NewSampler(run.Builder, pystack.SamplerOptions{Interval: run.Interval, Spare: d.spare, Sharing: d.sharing}),
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
	w.noteUnread()
	if _, alive := procfs.Start(d.root); !alive {
		return nil // it has ended, and so does the recording: nothing is missing
	}
	return err
}

// forgetDead lets go of processes that have ended since the last run.
func (d *descendants) forgetDead() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, p := range d.processes {
		if start, alive := procfs.Start(id.PID); !alive || start != id.Start {
			p.Close()
			delete(d.processes, id)
		}
	}
}

// begin is that a run has none so far.
func (d *descendants) begin(of *timeline.Builder) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of, d.read = of, nil
}

// sources are the processes that are read for a run.
func (d *descendants) sources(of *timeline.Builder) []pytasks.Source {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of != of {
		return nil
	}
	return d.read
}

func (d *descendants) get(id proctree.Identity) *pystack.Process {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.processes[id]
}

// put keeps a process, which a run reads; false if another attempt was first.
func (d *descendants) put(m proctree.Member, p *pystack.Process, of *timeline.Builder) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known := d.processes[m.Identity]; known != nil && known != p {
		return false
	}
	d.processes[m.Identity] = p
	if source := (pytasks.Source{Process: m.Index, Of: p}); d.of == of && !slices.Contains(d.read, source) {
		d.read = append(slices.Clone(d.read), source)
	}
	return true
}

func (d *descendants) take(id proctree.Identity) *pystack.Process {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.processes[id]
	delete(d.processes, id)
	d.read = slices.DeleteFunc(slices.Clone(d.read), func(s pytasks.Source) bool { return s.Of == p })
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
	case w.run.Children != recorder.ChildrenStacks || m.Ours:
		w.refuse(m, timeline.StacksNotAsked, "")
		return
	case again.PID != 0: // it has executed another program
		w.drop(again)
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
	b := w.run.Builder
	b.EndGap(m.PID, b.Since(timeline.Monotonic()))
	b.Describe(func(r *timeline.Recording) {
		if m.Index > 0 && m.Index < len(r.Processes) && r.Processes[m.Index].Stacks.Reason == timeline.StacksUnknown {
			r.Processes[m.Index].Stacks.Reason = timeline.StacksTooShort
		}
	})
	w.drop(m) // the sampler may know better
}

// drop lets go of a process that has ended, or runs another program.
func (w *watch) drop(m proctree.Member) {
	p := w.d.take(m.Identity)
	switch {
	case p == nil:
	case w.run.Children != recorder.ChildrenStacks: // an earlier run's; nobody samples it
		p.Close()
	default:
		w.leaveImage(m, p)
		w.sampler.Remove(p, p.Close)
	}
}

// leaveImage has later forks of m's program attached to by way of another process that
// runs it, if there is one.
func (w *watch) leaveImage(m proctree.Member, p *pystack.Process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.images[m.Image] != p {
		return
	}
	delete(w.images, m.Image)
	for id, other := range w.living {
		if other.Image != m.Image || id == m.Identity {
			continue
		}
		if q := w.d.get(id); q != nil {
			w.images[m.Image] = q
			return
		}
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
		case err == nil && !w.d.put(m, p, w.run.Builder): // another attempt was first
			w.sampler.Remove(p, p.Close)
		case err != nil:
			w.retry(m, 0)
		}
	}, func(err error) { w.lost(m, err) })
}

// join samples a process that is attached to.
func (w *watch) join(m proctree.Member, p *pystack.Process) {
	if !w.d.put(m, p, w.run.Builder) {
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
		w.leaveImage(m, p)
		p.Close()
	}
	if errors.Is(err, pystack.ErrPermission) {
		w.refuse(m, timeline.StacksDenied, err.Error())
	}
	w.retry(m, attachPause)
}

// retry attaches to a process once more that could not be read as what it was. It may
// have executed another program, which the tree then reports soon.
func (w *watch) retry(m proctree.Member, pause time.Duration) {
	if w.runs(m) {
		w.tree.Recheck(m.Identity)
		now := time.Now()
		w.enqueue(attempt{member: m, due: now.Add(pause), pause: startUp, until: now.Add(pythonPatience), anew: true})
	}
}

// runs reports whether a process lives and runs the program that it was reported with.
func (w *watch) runs(m proctree.Member) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.runsLocked(m)
}

func (w *watch) runsLocked(m proctree.Member) bool {
	now, lives := w.living[m.Identity]
	return lives && now.Image == m.Image
}

// refuse notes why a process's stacks are not read, so far. Of one that was read, as it
// cannot be any more when it shuts down, only a refusal by the system counts.
func (w *watch) refuse(m proctree.Member, reason timeline.NoStacks, detail string) {
	w.run.Builder.Describe(func(r *timeline.Recording) {
		if m.Index >= len(r.Processes) {
			return
		}
		s := &r.Processes[m.Index].Stacks
		if s.Reason != timeline.StacksRead || reason == timeline.StacksDenied {
			s.Reason, s.Detail = reason, detail
		}
	})
}

// worthNoting is how long a process must have lived unread for a word about it: ten times
// what it takes where a CPU is free. An interpreter that only starts takes some 30 ms.
const worthNoting = 10 * 20 * time.Millisecond

// noteUnread says of how many processes that run Python the stacks are missing, although
// they may be read: the profiler had no CPU in time.
func (w *watch) noteUnread() {
	if w.run.Children != recorder.ChildrenStacks {
		return
	}
	missed, python, longest := 0, 0, time.Duration(0)
	b := w.run.Builder
	now := b.Since(timeline.Monotonic())
	b.Describe(func(r *timeline.Recording) {
		for i := 1; i < len(r.Processes); i++ {
			p := &r.Processes[i]
			end := now
			if p.End != 0 {
				end = p.End
			}
			switch lived := (end - max(p.Start, 0)).Duration(); {
			case p.Stacks.Reason == timeline.StacksRead:
				python++
			case lived >= worthNoting && (p.Stacks.Reason == timeline.StacksTooShort || p.Stacks.Reason == timeline.StacksUnknown):
				missed, python, longest = missed+1, python+1, max(longest, lived)
			}
		}
	})
	if missed == 0 {
		return
	}
	said := fmt.Sprintf("missing of %d of %d that run Python; they lived up to %s", missed, python, words.Duration(longest))
	if pause := w.tree.LongestPause(); pause >= worthNoting/2 {
		said += fmt.Sprintf(". The machine was too busy: the profiler looks for new processes every 20 ms and once came to it after %s", words.Duration(pause))
	}
	b.Note(timeline.NoteLeftOut, "stacks of child processes", said)
}
