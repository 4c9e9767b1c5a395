package program

import (
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/jupyter"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

const mb = int64(1 << 20)

// readings are levels that were read at so many milliseconds.
func readings(at map[int]int64) *levels {
	l := &levels{}
	for ms := range 1000 {
		if bytes, read := at[ms]; read {
			l.all = append(l.all, level{moment(ms), moment(ms), bytes * mb})
		}
	}
	return l
}

func moment(ms int) time.Time { return time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond) }

// What a short cell has kept is the difference of a reading before and one behind it, between which no other cell ran. Where
// there is none, nothing is said.
func TestWhatACellHasKept(t *testing.T) {
	const began, ended = 100, 120 // the cell before it ended at 90
	for name, c := range map[string]struct {
		read       map[int]int64
		next       int
		kept       int64
		isNotKnown bool
	}{
		"a reading at each edge":               {map[int]int64{99: 50, 121: 250}, 130, 200, false},
		"what it did meanwhile is no matter":   {map[int]int64{99: 50, 110: 300, 121: 40}, 130, -10, false},
		"the last before and the first behind": {map[int]int64{92: 40, 99: 50, 121: 250, 125: 245}, 130, 200, false},
		"none before it":                       {map[int]int64{101: 70, 121: 250}, 130, 0, true},
		"only in the cell before":              {map[int]int64{89: 50, 121: 250}, 130, 0, true},
		"only in the next cell":                {map[int]int64{99: 50, 131: 400}, 130, 0, true},
	} {
		k := &follower{levels: readings(c.read), ran: moment(90)}
		w := &watched{sent: moment(began), ended: moment(ended)}
		rec := &timeline.Recording{Processes: make([]timeline.Process, 1)}
		e := k.edgesOf(w)
		e.settle(moment(c.next))
		e.describe(rec)
		m := rec.Processes[0].Memory
		if known := m.AtBegin > 0 && m.AtEnd > 0; known == c.isNotKnown || m.AtEnd-m.AtBegin != c.kept*mb {
			t.Errorf("%s: from %d to %d MiB, want %d more", name, m.AtBegin/mb, m.AtEnd/mb, c.kept)
		}
		if !k.ran.Equal(w.ended) {
			t.Errorf("%s: it ran until %v", name, k.ran)
		}
	}
}

// A cell that was announced and not seen to begin may have kept what is between two others.
func TestWhatACellBesideAnUnseenOneHasKept(t *testing.T) {
	l := readings(map[int]int64{95: 50, 121: 250})
	l.due = []time.Time{moment(91), moment(97), moment(120), moment(125)}
	if got := l.before(moment(90), moment(100)); got != 0 {
		t.Errorf("%d MiB before it, of the cell that was not seen", got/mb)
	}
	if got := l.after(moment(119), moment(130)); got != 0 {
		t.Errorf("%d MiB behind it, of the cell that was not seen", got/mb)
	}
	if before, after := l.before(moment(92), moment(100)), l.after(moment(121), moment(130)); before != 50*mb || after != 250*mb {
		t.Errorf("%d and %d MiB where all were seen", before/mb, after/mb)
	}
	if got := l.after(moment(120), time.Time{}); got != 250*mb {
		t.Errorf("%d MiB behind the last cell", got/mb)
	}
}

// Of a cell beside another one nobody knows which of the two has kept the memory.
func TestACellBesideAnotherHasKeptNothingThatIsKnown(t *testing.T) {
	l := readings(map[int]int64{99: 50, 121: 250})
	for _, k := range []*follower{{levels: l}, {levels: l, running: map[string]*watched{"other": {}}}} {
		w := &watched{sent: moment(100), ended: moment(120), beside: len(k.running) == 0}
		if e := k.edgesOf(w); e.levels != nil {
			t.Errorf("got %+v", e)
		}
	}
}

// What all cells have kept is known where the first begin and the last end are.
func TestWhatAllCellsHaveKept(t *testing.T) {
	k := &follower{levels: readings(map[int]int64{9: 50, 31: 250, 51: 80})}
	g := &gathered{stopped: make(chan stoppedCell, 4)}
	for _, at := range [][2]int{{10, 20}, {22, 30}, {40, 50}} {
		g.begins(moment(at[0]))
		w := &watched{sent: moment(at[0]), ended: moment(at[1])}
		w.edges = k.edgesOf(w)
		g.add(Tools{}, w, nil)
	}
	if got := g.kept(); got != nil {
		t.Errorf("%d while the last cell's end is not known", *got)
	}
	g.settle(moment(900))
	if got := g.kept(); got == nil || *got != 30*mb {
		t.Errorf("got %v, want 30 MiB", got)
	}
}

// The memory is read when a message arrives, though its reader is busy.
func TestMemoryIsReadWhenAMessageArrives(t *testing.T) {
	reads := make(chan bool, 9)
	l := &levels{resident: func() (int64, bool) { reads <- true; return mb, true }}
	said := make(chan jupyter.Event, 4)
	heard := l.heard(said)
	said <- jupyter.Event{Kind: jupyter.CellStarted}
	said <- jupyter.Event{Kind: jupyter.CellEnded}
	<-reads
	<-reads
	close(said)
	if a, b := <-heard, <-heard; a.Kind != jupyter.CellStarted || b.Kind != jupyter.CellEnded {
		t.Errorf("got %v, %v", a, b)
	}
	if _, more := <-heard; more || len(l.all) != 2 {
		t.Errorf("%d readings", len(l.all))
	}
}
