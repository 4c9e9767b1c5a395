package program

import (
	"fmt"
	"math"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/recorder"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/output"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

const (
	partialEvery = time.Minute
	// partialShare bounds what partial reports cost, as a share of a core.
	partialShare = 0.005
)

// partial writes the report of a program that still runs, so that a machine that goes
// down leaves one. One goroutine at a time.
type partial struct {
	tools    Tools
	options  Options
	files    []File
	recorder *recorder.Recorder
	began    time.Time
	next     time.Time // report
	nextLine time.Time // of progress
	lines    int       // of progress, so far
	samples  int64
	lineAt   time.Time // when the last one was written
	every    time.Duration
	now      chan struct{} // one is wanted at once
}

// progressAt is when a terminal is shown how far a program is, at first; later each minute.
var progressAt = []time.Duration{10 * time.Second, 30 * time.Second, time.Minute}

func newPartial(t Tools, o Options, files []File, r *recorder.Recorder, every time.Duration) *partial {
	p := &partial{tools: t, options: o, recorder: r, began: time.Now(), every: every, now: make(chan struct{}, 1)}
	for _, f := range files {
		if !output.IsSpecial(f.Path) {
			p.files = append(p.files, f)
		}
	}
	p.next = p.began.Add(every)
	p.nextLine, p.lineAt = p.began.Add(progressAt[0]), p.began
	return p
}

// soon asks for a report at once: whoever has sent a signal may not wait for the end.
func (p *partial) soon() {
	select {
	case p.now <- struct{}{}:
	default:
	}
}

// run writes and reports until done closes.
func (p *partial) run(done <-chan struct{}) {
	for {
		wait := time.Until(p.next)
		if p.options.Terminal {
			wait = min(wait, time.Until(p.nextLine))
		}
		timer := time.NewTimer(max(wait, 0))
		wanted := false
		select {
		case <-done:
			timer.Stop()
			return
		case <-p.now:
			wanted = true
		case <-timer.C:
		}
		timer.Stop()
		if p.options.Terminal && !time.Now().Before(p.nextLine) {
			p.progress()
		}
		if wanted || !time.Now().Before(p.next) {
			p.write()
		}
	}
}

// write replaces the result files by those of the program so far.
func (p *partial) write() {
	start := time.Now()
	defer func() {
		_ = recover() // the report at the end says it
		cost := time.Since(start)
		p.next = start.Add(max(p.every, time.Duration(float64(cost)/partialShare)))
	}()
	rec, err := p.recorder.SoFar(recordingID)
	if err != nil || len(p.files) == 0 {
		return
	}
	rec.Notes = append(rec.Notes, timeline.Note{ID: timeline.NotePartial, What: "report", Reason: "of the first " + words.Seconds(rec.Duration.Seconds()) + ": the program was still running"})
	report, err := p.tools.Analyse(rec)
	if err != nil {
		return // likewise
	}
	writeQuietly(report, p.files)
}

// writeQuietly replaces result files by those of a report that another will follow, which
// says what is wrong, and goes elsewhere then. It returns the files that were written.
func writeQuietly(r *report.View, files []File) (written []string) {
	for _, f := range files {
		if output.IsSpecial(f.Path) { // what goes to a device or FIFO goes once
			continue
		}
		content, err := f.Format.Encode(r)
		if err != nil || output.Check(f.Path) != nil || output.WriteBytes(f.Path, content) != nil {
			continue
		}
		written = append(written, f.Path)
	}
	return written
}

// progress shows on a terminal how far the program is, in a line of its own.
func (p *partial) progress() {
	now := time.Now()
	p.lines++
	if p.lines < len(progressAt) {
		p.nextLine = p.began.Add(progressAt[p.lines])
	} else {
		p.nextLine = now.Add(time.Minute)
	}
	figures := p.recorder.Latest(recordingID)
	line := "omni-perf: " + words.Seconds(now.Sub(p.began).Seconds())
	if elapsed := now.Sub(p.lineAt).Seconds(); elapsed > 0 {
		line += fmt.Sprintf(" · %s samples/s", words.Count(int64(float64(figures.Samples-p.samples)/elapsed)))
	}
	p.samples, p.lineAt = figures.Samples, now
	if !math.IsNaN(figures.Cores) {
		line += " · " + words.CoresUsed(figures.Cores, 0) + " busy"
	}
	if !math.IsNaN(figures.GPU) {
		line += " · GPU " + words.Quantity(figures.GPU, "%") + " busy"
	}
	fmt.Fprintln(p.options.Messages, line)
}
