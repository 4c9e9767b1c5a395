package cupti

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Variable names the folder of the rings to processes that the driver loads the library into.
const Variable = "OMNI_PERF_EXACT"

// What is what notes call it.
const What = "exact GPU activity"

// fileName is that of the ring of a process, by its id.
var fileName = regexp.MustCompile(`^exact-([1-9][0-9]{0,9})$`)

// IsFile reports whether a file in the folder is a ring.
func IsFile(name string) bool { return fileName.MatchString(name) }

// How often rings are read while something is recorded: a program of 10⁶ activities in a second fills one in 130 ms.
// And how often new ones are looked for: soon after the beginning, then more and more rarely, as what
// lies in a ring is not lost.
const (
	readEvery   = 20 * time.Millisecond
	firstLook   = 50 * time.Millisecond
	seldomLooks = 2 * time.Second
)

// Sink is what a Collector writes to; *timeline.Builder is one.
type Sink interface {
	AddWork(timeline.DeviceWork)
	Since(monotonic int64) timeline.Nanos
	Note(id timeline.NoteID, what, reason string)
}

// Collector reads the rings in a folder.
type Collector struct {
	Folder string // private to the session: whoever writes there is the target or descends from it
	// Scarce says that a device's memory may run out, of which CUPTI takes more and more in some versions: what
	// records then ends. nil: nobody knows.
	Scarce func() bool
}

// Collect reads until ctx ends, and then delivers what devices did for each process.
func (c Collector) Collect(ctx context.Context, sink Sink) error {
	processes := make(map[int]*process)
	folder := folder{path: c.Folder}
	defer func() {
		for _, p := range processes {
			if p.ring != nil {
				p.ring.close()
			}
		}
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	look := time.Now() // when to look for the next time
	pause := firstLook // from then to the time after
	for over := false; !over; {
		select {
		case <-ctx.Done():
			over = true
		case <-timer.C:
		}
		if now := time.Now(); over || !now.Before(look) {
			folder.look(processes)
			look, pause = now.Add(pause), min(2*pause, seldomLooks)
		}
		next := time.Until(look)
		for _, p := range processes {
			p.read()
			if p.work.open && p.ring != nil {
				next = min(next, readEvery)
				if c.Scarce != nil && c.Scarce() {
					_ = p.ring.halt() // one that is damaged is found by the next reading
				}
			}
		}
		timer.Reset(next)
	}
	until := timeline.Monotonic()
	for _, p := range processes {
		p.deliver(until, sink)
	}
	return nil
}

// process is one that has a ring.
type process struct {
	pid    int
	ring   *ring // nil where it cannot be read, or no longer
	counts counts
	work   work
	err    error
}

// folder is where rings are made. It is listed where something was made in it: in most of the recordings of a session
// nothing is.
type folder struct {
	path    string
	listed  time.Time // when that was; zero: never
	changed time.Time // when something was last made in it, as seen then
	pending bool      // a ring was not finished
}

// settled is how long after a change a file system may give the next one the same time.
const settled = time.Second

// look opens the rings that are new.
func (f *folder) look(processes map[int]*process) {
	now, changed := time.Now(), time.Time{}
	if st, err := os.Stat(f.path); err == nil {
		changed = st.ModTime()
	}
	if !f.pending && !f.listed.IsZero() && changed.Equal(f.changed) && f.listed.Sub(changed) > settled {
		return
	}
	f.listed, f.changed, f.pending = now, changed, false
	entries, _ := os.ReadDir(f.path) // without a folder there are none
	for _, e := range entries {
		match := fileName.FindStringSubmatch(e.Name())
		if match == nil {
			continue
		}
		pid, _ := strconv.Atoi(match[1])
		if processes[pid] != nil {
			continue
		}
		r, err := open(filepath.Join(f.path, e.Name()), pid)
		if errors.Is(err, errUnfinished) || errors.Is(err, fs.ErrNotExist) {
			f.pending = true
			continue
		}
		processes[pid] = &process{pid: pid, ring: r, err: err}
	}
}

func (p *process) read() {
	if p.ring == nil {
		return
	}
	err := p.ring.read(p.work.take)
	if err == nil {
		p.counts, err = p.ring.counts()
	}
	if err != nil {
		p.err = err
		p.ring.close()
		p.ring = nil
	}
}

// deliver writes what was read, and why there is not more.
func (p *process) deliver(until int64, sink Sink) {
	if p.err != nil {
		sink.Note(timeline.NoteFailed, What, fmt.Sprintf("of process %d it cannot be read: %v", p.pid, p.err))
		return // what it says of completeness is worth nothing
	}
	for _, why := range p.work.why {
		id := timeline.NoteUnavailable
		if len(p.work.activities) > 0 {
			id = timeline.NoteFailed
		}
		sink.Note(id, What, reason(why.number).sentence(p.counts, why.start))
	}
	d, ok := p.work.deliver(p.pid, until, int64(p.counts.pending), p.counts.blind != 0, sink.Since)
	if !ok || len(d.Activities) == 0 && len(d.Complete) == 0 {
		return
	}
	if p.work.left > 0 || p.work.cut {
		left := fmt.Sprintf("%d pieces of work are missing, as more came than could be taken", p.work.left)
		if p.counts.rests > 0 {
			left = fmt.Sprintf("%d pieces of work are missing: it was recorded in bursts, as recording all of it would cost the program too much", p.work.left)
		}
		if p.work.cut {
			left = fmt.Sprintf("the first %d pieces of work of process %d are kept", mostActivities, p.pid)
		}
		sink.Note(timeline.NoteLeftOut, What, left)
	}
	sink.AddWork(d)
}
