package program

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/traces/addtrace"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/wording"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// watched is a cell that is recorded.
type watched struct {
	recording string // its id in the recorder
	cell      *timeline.Cell
	began     time.Time
	sent      time.Time     // by the kernel: the message of its start
	ended     time.Time     // by the kernel: that of its end; zero: not known, as sent may be
	queued    time.Duration // for which its thread waited for a CPU, at most; 0: not known, too
	already   bool          // it ran before it was watched
	subshell  bool
	beside    bool  // it began while another one ran
	edges     edges // once it has ended
	absent    int   // for so many looks it was not on the kernel's stack
	row       int   // in the journal
	next      time.Time
	pause     time.Duration       // between reports while it runs
	rec       *timeline.Recording // once it was cut short
	looks     *looks              // nil without an audience
}

// length is for how long the cell ran by the kernel's own times; 0: not known. The recording begins and ends when
// messages have been read, which is later on a busy machine.
func (w *watched) length() time.Duration {
	if w.sent.IsZero() || w.ended.IsZero() {
		return 0
	}
	return max(w.ended.Sub(w.sent), 0)
}

// late is for how long the cell had run by the kernel's own times when its recording began; 0: not known.
func (w *watched) late() time.Duration {
	if w.length() == 0 {
		return 0
	}
	return max(w.began.Sub(w.sent), 0)
}

// sources are the text of the cell, where it is known, and what a magic at its top runs, as %%capture runs the rest as
// a cell of its own. names has the files of cells by their texts.
func (w *watched) sources(names func(code string) string) []timeline.Source {
	if w.cell.Text == "" {
		return nil
	}
	own := timeline.Source{File: w.cell.File, ExecutionCount: w.cell.ExecutionCount, Text: w.cell.Text}
	magic, body, ok := strings.Cut(strings.TrimLeft(w.cell.Text, "\n"), "\n")
	if !ok || !strings.HasPrefix(magic, "%%") {
		return []timeline.Source{own}
	}
	body = strings.TrimSuffix(body, "\n") + "\n" // as IPython hands it on
	return []timeline.Source{own, {File: names(body), ExecutionCount: w.cell.ExecutionCount, Text: body, Nested: true}}
}

// What the end of the kernel's process was for the cell that it cut short.
const (
	kernelDied      = "kernel died"
	kernelRestarted = "kernel restarted"
	interrupted     = "interrupted" // by a signal to who has it executed
	timedOut        = "timed out"   // by --timeout
)

// showCut shows the cells that the end of the process cut short.
func (k *follower) showCut(outcome string) {
	for _, w := range k.cut {
		cut := outcome
		if cut == kernelRestarted && !k.observer.Shutdown() && endedItself(w.rec) {
			cut = kernelDied // before anybody restarted it
		}
		w.rec.Target.Cell.Outcome = cut
		k.show(w, w.rec)
	}
	k.cut = nil
}

// endedItself reports whether the process of a recording is known to have ended otherwise than by a signal with which
// whoever restarts a kernel ends it.
func endedItself(rec *timeline.Recording) bool {
	if len(rec.Processes) == 0 || rec.Processes[0].Exit == nil {
		return false
	}
	return !slices.Contains([]unix.Signal{unix.SIGKILL, unix.SIGTERM, unix.SIGINT, unix.SIGHUP}, unix.Signal(rec.Processes[0].Signal))
}

// died is how the kernel died in a cell; empty where it did not, or where that is not known. Its report has the stacks.
func (w *watched) died(rec *timeline.Recording, r *report.View) string {
	if rec.Target.Cell.Outcome != kernelDied || len(rec.Processes) == 0 || rec.Processes[0].Exit == nil {
		return ""
	}
	place, before := r.DiedIn(rec.Processes[0].Signal)
	d := wording.Died{
		Exit: rec.Processes[0].Exit, Signal: rec.Processes[0].Signal, Cell: w.cell.ExecutionCount, IntoS: rec.Duration.Seconds(), Place: place, Resident: r.LastResident(),
		SeenS: rec.TargetSeenBefore().Seconds() + before.Seconds(),
	}
	if w.already {
		d.Program, d.Watched = "The kernel", true
	}
	return d.Sentence()
}

func (k *follower) show(w *watched, rec *timeline.Recording) {
	if a := k.options.Audience; a != nil {
		a.Note(cellTitle(w) + " " + k.tools.inShort(rec, outcomeText(rec.Target.Cell.Outcome)))
		return
	}
	if g := k.options.gathered; g != nil {
		g.add(k.tools, w, func() *timeline.Recording { return rec })
		return
	}
	k.settleNow(w, rec)
	files := k.files(w)
	r, written, err := k.tools.shown(rec, addtrace.Traced{}, files, k.options)
	if err != nil {
		fmt.Fprintf(k.options.Messages, "omni-perf: %v\n", err) // the next cell may fare better
	}
	if r != nil && rec.Target.Cell.Outcome == "still running" {
		if place, _ := r.LastPlace(); place != "" {
			fmt.Fprintf(k.options.Messages, "omni-perf: the cell still runs; it was in %s\n", place)
		}
	}
	if r != nil {
		if died := w.died(rec, r); died != "" {
			fmt.Fprintf(k.options.Messages, "omni-perf: %s\n", died)
		}
	}
	k.journal.update(w, r, files, written, err, false)
}

func (k *follower) files(w *watched) []File {
	return k.options.Results.Files(cellSuffix(k.restarts, w.cell.ExecutionCount))
}

// firstPause is until the first report of a cell that runs on; each later one takes twice as
// long, up to partialEvery.
const firstPause = 5 * time.Second

// look is due each second. It reports on the cells that run, now and then; finds out about a
// cell that runs and whose start was not seen, and about the end of one that IOPub may have
// lost, by the kernel's stack.
func (k *follower) look() error {
	k.showLive()
	if !k.begun {
		return nil
	}
	if k.observer.OtherKey() && !k.refused {
		return k.unreadable()
	}
	if err := errors.Join(k.lookForStart(), k.lookForEnd()); err != nil {
		return err
	}
	now := time.Now()
	for _, w := range k.running {
		if now.Before(w.next) || k.options.Folder == nil {
			continue
		}
		k.soFar(w)
		w.pause = min(2*w.pause, partialEvery)
		w.next = time.Now().Add(max(w.pause, time.Duration(float64(time.Since(now))/partialShare)))
	}
	return nil
}

// showLive shows the audience the cell that began last.
func (k *follower) showLive() {
	if k.options.Audience == nil {
		return
	}
	var newest *watched
	for _, w := range k.running {
		if newest == nil || w.began.After(newest.began) {
			newest = w
		}
	}
	if newest == nil {
		k.options.Audience.Rest()
		return
	}
	newest.looks.show(k.options.Audience)
}

// cellTitle is what a cell is called in a list.
func cellTitle(w *watched) string {
	if w.cell.ExecutionCount > 0 {
		return fmt.Sprintf("[%d]", w.cell.ExecutionCount)
	}
	return "[?]"
}

// outcomeText says how a cell ended, where that is worth saying.
func outcomeText(outcome string) string {
	if outcome == "ok" {
		return ""
	}
	return outcome
}

// soFar writes the report of a cell that runs, as it is now.
func (k *follower) soFar(w *watched) {
	defer func() { _ = recover() }() // the report at the end says it
	rec, err := k.recorder.SoFar(w.recording)
	if err != nil {
		return
	}
	rec.Target.Cell.Outcome = "still running"
	rec.Notes = append(rec.Notes, timeline.Note{What: "report", Reason: "of the first " + words.Seconds(rec.Duration.Seconds()) + ": the cell was still running"})
	if w.already {
		rec.Notes = append(rec.Notes, metNote)
	}
	r, err := k.tools.Analyse(rec)
	if err != nil {
		return
	}
	files := k.files(w)
	k.journal.update(w, r, files, writeQuietly(r, files), nil, true)
}
