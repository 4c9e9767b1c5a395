package program

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/glance"
)

// gathered takes the cells of an executed notebook. What each of them was is found out by goroutines of their own, since the
// one that follows the kernel has the next cell to begin, and mostly when the notebook has ended: to analyse and to draw a
// short cell takes more CPU time than the cell, which the next ones would lack on a machine without a free CPU.
type gathered struct {
	tools    func(pid int) Tools
	ready    func() // the cells are followed
	terminal bool   // each cell is shown when it has ended
	to       io.Writer
	cut      string       // why the last cell was interrupted, if that is known; before cells is called
	mu       sync.Mutex   // of what follows
	last     *stoppedCell // until the next one begins, it is not known what it has kept
	began    bool         // there was a cell
	before   int64        // bytes that the kernel had resident when the first cell began; 0: not known
	after    int64        // likewise, when the last one had ended

	stopped  chan stoppedCell
	waiting  chan []endedCell   // those to be analysed later, when stopped is closed
	ended    chan endedCell     // to be analysed
	analysed chan []glance.Cell // all of them, when ended is closed
}

// stoppedCell is a cell of an executed notebook whose recording comes to rest.
type stoppedCell struct {
	tools Tools
	watched
	seen func() *timeline.Recording
}

// endedCell is a cell of an executed notebook that is to be analysed.
type endedCell struct {
	tools Tools
	watched
	rec *timeline.Recording
}

// Recordings wait until they are so many or so long together, so that memory is bounded.
const (
	maxWaiting       = 64
	maxWaitingLength = timeline.Nanos(30 * time.Second)
)

func gather(tools func(pid int) Tools, o Options) *gathered {
	g := &gathered{
		tools: tools, terminal: o.Terminal, to: o.Messages, stopped: make(chan stoppedCell, maxWaiting), waiting: make(chan []endedCell, 1),
		ended: make(chan endedCell, maxWaiting), analysed: make(chan []glance.Cell, 1),
	}
	go g.take()
	go func() {
		var cells []glance.Cell
		for e := range g.ended {
			cells = append(cells, g.analyse(e))
		}
		g.analysed <- cells
	}()
	return g
}

func (g *gathered) add(t Tools, w *watched, seen func() *timeline.Recording) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last != nil { // this one's begin was not seen
		if w.sent.IsZero() {
			g.last.edges.levels = nil
		}
		g.settle(w.sent)
	}
	if !g.began {
		g.began, g.before = true, w.edges.before
	}
	last := &stoppedCell{t, *w, seen}
	g.last, g.after = last, 0
	if g.terminal {
		time.AfterFunc(nextWait, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.last == last {
				last.edges.levels = nil
				g.settle(time.Time{})
			}
		})
	}
}

// nextWait is how long the line of a cell waits on a terminal for the begin of the next one, until which it is not known
// what it has kept.
const nextWait = 500 * time.Millisecond

// begins hands on the cell before one that begins.
func (g *gathered) begins(at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settle(at)
}

// settle finds what the last cell has kept, now that it is known when the next one began, and hands it on.
func (g *gathered) settle(next time.Time) {
	if g.last == nil {
		return
	}
	g.after = g.last.edges.settle(next)
	g.stopped <- *g.last
	g.last = nil
}

// kept is what all cells have kept together, each of which may not be known; nil: that is not, too.
func (g *gathered) kept() *int64 {
	if g.before == 0 || g.after == 0 {
		return nil
	}
	kept := g.after - g.before
	return &kept
}

// take takes the recordings in the order of the cells.
func (g *gathered) take() {
	var waiting []endedCell
	var length timeline.Nanos // of their recordings
	for s := range g.stopped {
		e := endedCell{s.tools, s.watched, s.seen()}
		e.edges.describe(e.rec)
		waiting = append(waiting, e)
		if e.rec.Target.Cell.Outcome == interrupted {
			continue // why is known later: cut
		}
		if length += e.rec.Duration; g.terminal || len(waiting) >= maxWaiting || length > maxWaitingLength {
			g.hand(waiting)
			waiting, length = nil, 0
		}
	}
	g.waiting <- waiting
}

// endedBy says why the last cell was interrupted, if it was.
func (g *gathered) endedBy(cut string) { g.cut = cut }

// hand hands cells to the goroutine that analyses them.
func (g *gathered) hand(cells []endedCell) {
	for _, e := range cells {
		g.ended <- e
	}
}

// cells are all cells; none is added afterwards.
func (g *gathered) cells() []glance.Cell {
	g.mu.Lock()
	g.settle(time.Time{})
	g.mu.Unlock()
	close(g.stopped)
	waiting := <-g.waiting
	if n := len(waiting); n > 0 && waiting[n-1].rec.Target.Cell.Outcome == interrupted && g.cut == timedOut {
		waiting[n-1].rec.Target.Cell.Outcome = timedOut
	}
	g.hand(waiting)
	close(g.ended)
	return <-g.analysed
}

// mostlyMissed is the share of a cell's time from which on it had run before its recording began that nothing is said of it:
// what is left would be taken for the cell.
const mostlyMissed = 0.9

func (g *gathered) analyse(e endedCell) glance.Cell {
	rec := e.rec
	c := glance.Cell{Number: e.cell.ExecutionCount, Code: glance.FirstLine(e.cell.Text), Lines: glance.Lines(e.cell.Text), Duration: time.Duration(rec.Duration), Outcome: rec.Target.Cell.Outcome}
	if length := e.length(); length > 0 && float64(rec.Duration) <= (1-mostlyMissed)*float64(length) {
		c.Duration, c.Missing, c.Figures.Kept = length, "it had ended when its recording began", e.edges.kept()
	} else if err := g.draw(e, &c); err != nil {
		c.Missing = err.Error()
	}
	if g.terminal {
		fmt.Fprintf(g.to, "omni-perf: %s %s\n", cellTitle(&e.watched), c.InShort())
	}
	return c
}

// draw fills in what the recording of a cell shows.
func (g *gathered) draw(e endedCell, c *glance.Cell) (err error) {
	rec := e.rec
	defer func() {
		if p := recover(); p != nil { // the next cell may fare better
			err = fmt.Errorf("a bug of omni_perf: %v", p)
		}
	}()
	r, err := e.tools.Analyse(rec)
	if err != nil {
		return err
	}
	c.SetReport(r)
	if died := e.died(rec, r); died != "" {
		fmt.Fprintf(g.to, "omni-perf: %s\n", died)
		c.Headline = strings.TrimSpace(died + " " + c.Headline)
	}
	if c.Figures.Kept == nil {
		c.Figures.Kept = e.edges.kept()
	}
	traceback := time.Duration(int64(rec.Duration) - r.DurationNS) // which the report leaves out of the recording
	if traceback > 0 {
		c.Figures.Traceback = &traceback
	}
	if length := e.length(); length > 0 {
		c.Duration = max(length-traceback, 0)
		*c.Figures.NoCPU = min(max(*c.Figures.NoCPU, e.queued), length)
	}
	return c.Draw(r)
}
