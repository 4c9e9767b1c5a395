package program

import (
	"context"
	"fmt"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/recorder"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/live"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Audience is shown what a process or kernel does while it runs. One goroutine.
type Audience interface {
	Watch(name string)    // what is followed from now on
	Look(now *live.Now)   // about once a second
	Rest()                // nothing runs; about once a second
	Note(sentence string) // of what has ended
}

// topEvery is the time between two looks; lookShare bounds what they cost, as a share of a core.
const (
	topEvery  = time.Second
	lookShare = 0.02
)

// looks are those at one recording.
type looks struct {
	recorder *recorder.Recorder
	follower *live.Follower
	id       string
	next     time.Time
}

func newLooks(t Tools, r *recorder.Recorder, id string) *looks {
	return &looks{recorder: r, follower: t.Follower(), id: id}
}

// show looks once more, unless that was just done.
func (l *looks) show(to Audience) {
	defer func() { _ = recover() }() // a bug here must not end what is followed
	start := time.Now()
	if start.Before(l.next) {
		return
	}
	rec, began, err := l.recorder.Recent(l.id, l.follower.From(timeline.Monotonic()))
	if err != nil {
		return
	}
	now := l.follower.Look(rec, began, live.Progress{})
	l.next = start.Add(time.Duration(float64(time.Since(start)) / lookShare))
	to.Look(&now)
}

// Top shows what a running process does, for d (0: until ctx ends or the process does).
func Top(ctx context.Context, t Tools, pid int, d time.Duration, o Options) error {
	gone, err := watch(ctx, pid)
	if err != nil {
		return err
	}
	defer outliveReaders()()
	target := describe(pid)
	r := t.Recorder(target)
	defer r.Close()
	if err := r.Attach(); err != nil {
		return t.unreadable("top", pid, err)
	}
	o.Audience.Watch(fmt.Sprintf("process %d %s", pid, words.Clean(commandOf(target.Argv), 60)))
	if _, err := r.Begin(recorder.Spec{ID: recordingID, Interval: o.Interval, FigureInterval: o.FigureInterval, Children: o.Children}); err != nil {
		return err
	}
	looks := newLooks(t, r, recordingID)
	var timeout <-chan time.Time
	if d > 0 {
		timeout = time.After(d)
	}
	tick := time.NewTicker(topEvery)
	defer tick.Stop()
	for {
		ended := ""
		select {
		case <-tick.C:
			looks.show(o.Audience)
			continue
		case <-timeout:
		case <-ctx.Done():
		case <-gone:
			ended = "the process ended"
		}
		rec, err := r.End(recordingID, recorder.Ending{Outcome: "ok"})
		if err != nil {
			return err
		}
		o.Audience.Note(t.inShort(rec, ended))
		return nil
	}
}

// inShort is a recording in a line: for how long, how it ended, and the headline.
func (t Tools) inShort(rec *timeline.Recording, ended string) (line string) {
	line = words.Seconds(rec.Duration.Seconds())
	if ended != "" {
		line += ", " + ended
	}
	defer func() { _ = recover() }() // the headline is lost, what is followed is not
	if r, err := t.Analyse(rec); err == nil && r.Headline.Kind != report.HeadlineTooFew {
		line += ": " + r.Headline.Text
	}
	return line
}

// commandOf is a command line without the folder of its program.
func commandOf(argv []string) string {
	text := ""
	for i, arg := range argv {
		if i > 0 {
			text += " "
		}
		text += words.ShortFile(arg)
	}
	return text
}
