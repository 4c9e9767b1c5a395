package batches

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// loop is a training that a test writes down: what it asks of loaders and the steps it makes, each a millisecond.
type loop struct {
	rec   timeline.Recording
	steps []Step
	at    timeline.Nanos
	pass  int
	given int64
	every int // readings: of so many batches one is read
	asked int
}

func newLoop(every int, loaders ...timeline.Loader) *loop {
	l := &loop{every: every, at: 1}
	for i := range loaders {
		loaders[i].ID = uint64(i + 1)
	}
	l.rec.Loaders = loaders
	return l
}

func (l *loop) tick() { l.at += timeline.Nanos(time.Millisecond) }

// ask asks for a batch of a pass, which is read now and then.
func (l *loop) ask(loader int, samples int64) {
	l.tick()
	if l.asked%l.every == 0 {
		l.rec.Batches = append(l.rec.Batches, timeline.LoaderReading{At: l.at, Loader: loader, Pass: l.pass, Yielded: l.given, Samples: samples})
	}
	l.asked++
	l.given++
}

func (l *loop) begin() { l.pass, l.given = l.pass+1, 0 }

func (l *loop) step() {
	l.tick()
	begin := l.at
	if n := len(l.steps); n > 0 {
		begin = l.steps[n-1].End
	}
	l.tick()
	l.steps = append(l.steps, Step{Start: begin, End: l.at})
}

// epoch trains with so many batches, a step for each perStep of them.
func (l *loop) epoch(loader, batches, perStep int, samples int64) {
	l.begin()
	for i := range batches {
		l.ask(loader, samples)
		if (i+1)%perStep == 0 {
			l.step()
		}
	}
	l.ask(loader, samples) // which ends the pass
}

// evaluate goes over a loader without steps.
func (l *loop) evaluate(loader, batches int) {
	l.begin()
	for range batches {
		l.ask(loader, 0)
	}
}

// show writes what steps worked on as 0:64×9,0:– — the epoch and the samples, and how often.
func show(worked []Worked) string {
	var parts []string
	for i := 0; i < len(worked); {
		text := func(w Worked) string {
			epoch, samples := "–", "–"
			if w.Epoch != nil {
				epoch = fmt.Sprint(*w.Epoch)
			}
			if w.Samples > 0 {
				samples = fmt.Sprint(w.Samples)
			}
			return epoch + ":" + samples
		}
		n := 1
		for i+n < len(worked) && text(worked[i+n]) == text(worked[i]) {
			n++
		}
		parts = append(parts, fmt.Sprintf("%s×%d", text(worked[i]), n))
		i += n
	}
	return strings.Join(parts, " ")
}

var plain = timeline.Loader{Batch: 64}

func TestStepsAndTheirBatches(t *testing.T) {
	for _, test := range []struct {
		name    string
		made    func(*loop)
		loaders []timeline.Loader
		every   int
		perStep int
		want    string
	}{
		{"epochs with a short batch", func(l *loop) {
			for range 3 {
				l.epoch(0, 10, 1, 600)
			}
		}, []timeline.Loader{plain}, 1, 1, "0:64×9 0:24×1 1:64×9 1:24×1 2:64×9 2:24×1"},
		{"of unknown length", func(l *loop) {
			for range 2 {
				l.epoch(0, 10, 1, 0)
			}
		}, []timeline.Loader{plain}, 1, 1, "0:64×9 0:–×1 1:64×9 1:–×1"},
		{"without short batches", func(l *loop) {
			for range 2 {
				l.epoch(0, 10, 1, 0)
			}
		}, []timeline.Loader{{Batch: 64, DropLast: true}}, 1, 1, "0:64×10 1:64×10"},
		{"seldom read", func(l *loop) {
			for range 4 {
				l.epoch(0, 50, 1, 3200)
			}
		}, []timeline.Loader{plain}, 7, 1, "0:64×50 1:64×50 2:64×50 3:64×50"},
		{"with validation", func(l *loop) {
			for range 3 {
				l.epoch(0, 10, 1, 640)
				l.evaluate(1, 20)
				l.evaluate(0, 10)
			}
		}, []timeline.Loader{plain, {Batch: 128}}, 1, 1, "0:64×10 1:64×10 2:64×10"},
		{"with validation within epochs", func(l *loop) {
			l.begin()
			for i := range 20 {
				if l.ask(0, 1280); i%5 == 4 {
					pass, given := l.pass, l.given
					l.pass, l.given = 100+i, 0
					for range 7 {
						l.ask(1, 0)
					}
					l.pass, l.given = pass, given
				}
				l.step()
			}
		}, []timeline.Loader{plain, {Batch: 128}}, 1, 1, "0:64×20"},
		{"gradients of four batches", func(l *loop) {
			for range 2 {
				l.epoch(0, 40, 4, 2560)
			}
		}, []timeline.Loader{plain}, 1, 4, "0:256×10 1:256×10"},
		{"gradients of four batches, and of those left at the epoch's end", func(l *loop) {
			for range 2 {
				l.begin()
				for i := range 50 {
					l.ask(0, 3200)
					if i%4 == 3 || i == 49 {
						l.step()
					}
				}
				l.ask(0, 3200)
			}
		}, []timeline.Loader{plain}, 1, 4, "0:256×12 0:128×1 1:256×12 1:128×1"},
		{"gradients of four batches that go over the epoch's end", func(l *loop) {
			done := 0
			for range 3 {
				l.begin()
				for range 42 {
					l.ask(0, 2688)
					if done++; done%4 == 0 {
						l.step()
					}
				}
			}
		}, []timeline.Loader{plain}, 1, 4, "0:256×10 1:–×1 1:256×9 1:–×1 2:256×10"},
		{"steps that a gradient scaler leaves out", func(l *loop) {
			for range 2 {
				l.begin()
				for i := range 30 {
					if l.ask(0, 0); i != 12 && i != 13 {
						l.step()
					}
				}
			}
		}, []timeline.Loader{{Batch: 64, DropLast: true}}, 1, 1, "0:64×12 0:–×1 0:64×14 0:–×1 1:64×12 1:–×1 1:64×14 1:–×1"},
		{"a batch is fetched ahead", func(l *loop) {
			for range 2 {
				l.begin()
				l.ask(0, 640)
				for range 9 {
					l.ask(0, 640)
					l.step()
				}
				l.step()
			}
		}, []timeline.Loader{plain}, 1, 1, "0:64×10 1:64×10"},
		{"a batch is fetched ahead, in epochs of unknown length", func(l *loop) {
			for range 2 {
				l.begin()
				l.ask(0, 0)
				for range 9 {
					l.ask(0, 0)
					l.step()
				}
				l.step()
			}
		}, []timeline.Loader{plain}, 1, 1, "0:64×9 0:–×1 1:64×9 1:–×1"},
		{"a batch is fetched ahead, seldom read", func(l *loop) {
			for range 4 {
				l.begin()
				l.ask(0, 3200)
				for range 49 {
					l.ask(0, 3200)
					l.step()
				}
				l.ask(0, 3200)
				l.step()
			}
		}, []timeline.Loader{plain}, 7, 1, "0:64×50 1:64×50 2:64×50 3:64×50"},
		{"a batch is fetched ahead, in epochs of unknown length, seldom read", func(l *loop) {
			for range 4 {
				l.begin()
				l.ask(0, 0)
				for range 49 {
					l.ask(0, 0)
					l.step()
				}
				l.ask(0, 0)
				l.step()
			}
		}, []timeline.Loader{{Batch: 64, DropLast: true}}, 7, 1, "0:64×50 1:64×50 2:64×50 3:64×50"},
		{"gradients of four batches, one fetched ahead, and of those left", func(l *loop) {
			for range 4 {
				l.begin()
				l.ask(0, 3264)
				for i := range 51 {
					l.ask(0, 3264)
					if i%4 == 3 || i == 50 {
						l.step()
					}
				}
			}
		}, []timeline.Loader{plain}, 5, 4, "0:256×12 0:192×1 1:256×12 1:192×1 2:256×12 2:192×1 3:256×12 3:192×1"},
		{"epochs without a reading", func(l *loop) {
			for i := range 7 {
				every := 1
				if i == 0 || i == 3 || i == 4 || i == 6 {
					every = 1000
				}
				l.every, l.asked = every, 1
				l.epoch(0, 10, 1, 600)
			}
		}, []timeline.Loader{plain}, 1, 1, "0:64×9 0:24×1 1:64×9 1:24×1 2:64×9 2:24×1 3:64×9 3:24×1 4:64×9 4:24×1 5:64×9 5:24×1 6:64×9 6:24×1"},
		{"epochs of unknown length without a reading", func(l *loop) {
			for i := range 6 {
				l.every, l.asked = 1+i%2*1000, 1
				l.epoch(0, 10, 1, 0)
			}
		}, []timeline.Loader{plain}, 1, 1, "–:64×10 –:–×10 –:64×10 –:–×10 –:64×10 –:–×10"},
		{"steps before the loader's", func(l *loop) {
			for range 5 {
				l.step()
			}
			for range 2 {
				l.epoch(0, 10, 1, 600)
			}
		}, []timeline.Loader{plain}, 1, 1, "–:–×5 –:64×9 –:24×1 –:64×9 –:24×1"},
		{"left early", func(l *loop) {
			for range 3 {
				l.epoch(0, 6, 1, 6400)
			}
		}, []timeline.Loader{plain}, 1, 1, "0:64×6 1:64×6 2:64×6"},
		{"batches of any size", func(l *loop) {
			for range 2 {
				l.epoch(0, 10, 1, 0)
			}
		}, []timeline.Loader{{}}, 1, 1, "0:–×10 1:–×10"},
		{"a stream by two workers", func(l *loop) {
			for range 2 {
				l.epoch(0, 10, 1, 0)
			}
		}, []timeline.Loader{{Batch: 64, Workers: 2, Stream: true}}, 1, 1, "0:–×10 1:–×10"},
		{"another loader in each epoch", func(l *loop) {
			for i := range 2 {
				l.epoch(i, 10, 1, int64(640*(i+1)))
			}
		}, []timeline.Loader{plain, {Batch: 128}}, 1, 1, "0:64×10 1:128×10"},
		{"two loaders side by side", func(l *loop) {
			for i := range 20 {
				for loader := range 2 {
					l.pass, l.given = loader+1, int64(i)
					l.ask(loader, 0)
				}
				l.step()
			}
		}, []timeline.Loader{plain, plain}, 1, 0, ""},
		{"a new iterator for each step", func(l *loop) {
			for range 20 {
				l.begin()
				l.ask(0, 0)
				l.step()
			}
		}, []timeline.Loader{plain}, 1, 0, ""},
		{"nothing but validation", func(l *loop) {
			for range 10 {
				l.step()
			}
			l.evaluate(0, 20)
		}, []timeline.Loader{plain}, 1, 0, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLoop(test.every, slices.Clone(test.loaders)...)
			test.made(l)
			loaders, worked := Of(&l.rec, 0, l.steps)
			perStep := 0
			if len(loaders) > 0 {
				perStep = loaders[0].PerStep
			}
			if got := show(worked); got != test.want || perStep != test.perStep {
				t.Errorf("%s of %d batches, want %s of %d", got, perStep, test.want, test.perStep)
			}
		})
	}
}

// The first step of a hook is not known: a recording's steps begin with its end.
func TestTheFirstStepMayBeMissing(t *testing.T) {
	l := newLoop(1, plain)
	l.epoch(0, 10, 1, 600)
	l.epoch(0, 10, 1, 600)
	loaders, worked := Of(&l.rec, 0, l.steps[1:])
	if got, want := show(worked), "0:64×8 0:24×1 1:64×9 1:24×1"; got != want || loaders[0].Counted != 19 {
		t.Errorf("%s, want %s; %+v", got, want, loaders)
	}
}

func TestOtherProcessesHaveTheirOwn(t *testing.T) {
	l := newLoop(1, timeline.Loader{Batch: 64, Process: 1})
	l.epoch(0, 10, 1, 600)
	if loaders, worked := Of(&l.rec, 0, l.steps); loaders != nil || worked != nil {
		t.Errorf("%v, %v of a process without loaders", loaders, worked)
	}
}

// What was read may be damaged: passes that have no steps are not counted one by one.
func TestAPassThatBeganLongAgo(t *testing.T) {
	l := newLoop(1, timeline.Loader{Batch: 64})
	l.begin()
	l.given = 1 << 40
	for range 20 {
		l.ask(0, 640)
		l.step()
	}
	began := time.Now()
	if loaders, worked := Of(&l.rec, 0, l.steps); len(loaders) != 1 || len(worked) != len(l.steps) || time.Since(began) > time.Second {
		t.Errorf("%d loaders, %d of %d steps in %v", len(loaders), len(worked), len(l.steps), time.Since(began))
	}
}

// Whatever is in a recording, there is an answer for each step or none.
func FuzzOf(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, uint8(3))
	f.Fuzz(func(t *testing.T, b []byte, batch uint8) {
		l := newLoop(1, timeline.Loader{Batch: int(batch)}, timeline.Loader{Batch: 3, DropLast: true})
		for _, c := range b {
			switch {
			case c < 100:
				l.step()
			case c < 120:
				l.begin()
			default:
				l.given += int64(c % 3)
				l.ask(int(c%2), int64(c)*7)
			}
		}
		if loaders, worked := Of(&l.rec, 0, l.steps); worked != nil && (len(worked) != len(l.steps) || len(loaders) == 0) {
			t.Errorf("%d answers for %d steps", len(worked), len(l.steps))
		}
	})
}

// Passes of one training that were not read are none of the next one's, which has other batches: of these steps nothing is known.
// Those of folds, which are alike, are.
func TestPassesOfAnotherTraining(t *testing.T) {
	for _, c := range []struct {
		name    string
		unread  int // the training that was not read
		perPass [2]int
		ticks   int // by which the second one's steps are longer
		want    string
	}{
		{"before", 0, [2]int{200, 25}, 3, "–:–×600 –:256×75"},
		{"after", 1, [2]int{200, 25}, 3, "–:32×600 –:–×75"},
		{"a fold before", 0, [2]int{25, 25}, 0, "0:256×25 1:256×25 2:256×25 3:256×25 4:256×25 5:256×25"},
		{"a fold after", 1, [2]int{200, 200}, 0, "0:32×200 1:32×200 2:32×200 3:32×200 4:32×200 5:32×200"},
	} {
		l := newLoop(1, timeline.Loader{Batch: 32}, timeline.Loader{Batch: 256})
		for i, perPass := range c.perPass {
			if l.every, l.asked = 1, 0; i == c.unread {
				l.every, l.asked = 1<<20, 1
			}
			from := len(l.steps)
			for range 3 {
				l.begin()
				for range perPass {
					l.ask(i, 6400)
					for range c.ticks * i {
						l.tick()
					}
					l.step()
				}
				l.ask(i, 6400)
			}
			l.steps[from].Uncounted = i == 1
		}
		_, worked := Of(&l.rec, 0, l.steps)
		if got := show(worked); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}
