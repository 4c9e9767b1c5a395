package batches

import (
	"math"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Step is a training step: it begins where the one before ended.
type Step struct {
	Start, End timeline.Nanos
	// Uncounted reports that it is the first of another training than before, and no step of the report, for what else is
	// in its time: it had its batches all the same.
	Uncounted bool
}

// Loader is one that a process trains with.
type Loader struct {
	timeline.Loader
	PerStep int // batches of a step; 0: not known
	Epochs  int // passes over it that its steps are numbered by
	Steps   int // of these
	Counted int // of these, those whose samples are known by it
	Batches int // that it handed out in these, at least
	Queue   Queue
	// WorkerTimes are how long each of its workers took for a batch, by its number; empty: not known.
	WorkerTimes []timeline.Nanos
}

// Worked is what a step worked on, as far as it is known.
type Worked struct {
	Epoch   *int  // counted from 0
	Samples int64 // 0: not known
}

// leastSteps is how many steps an epoch has, on average: one that has less is a batch that is asked for by a new
// iterator each time.
const leastSteps = 2

// Of finds out what the steps of a process, in order of time, worked on, and which loaders they had it from; both are empty
// where that is not known.
func Of(rec *timeline.Recording, process int, steps []Step) (loaders []Loader, worked []Worked) {
	if len(steps) == 0 {
		return nil, nil
	}
	passes := training(passesOf(rec, process, steps), len(steps))
	if len(passes) == 0 {
		return nil, nil
	}
	index := make(map[int]int)
	for _, p := range passes {
		if _, known := index[p.loader]; known {
			continue
		}
		var same []*pass
		for _, other := range passes {
			if other.loader == p.loader {
				same = append(same, other)
			}
		}
		index[p.loader] = len(loaders)
		loaders = append(loaders, loaderOf(rec.Loaders[p.loader], same, len(steps)))
	}
	bound(passes, loaders, index, len(steps))
	whole := within(passes, steps)
	passes, sure := complete(passes, steps, func(p *pass) *Loader { return &loaders[index[p.loader]] })
	queues(rec, index, loaders, steps[0].Start)
	worked = make([]Worked, len(steps))
	made := 0
	for i, p := range passes {
		l := &loaders[index[p.loader]]
		p.inherits = i > 0 && slices.Contains(passes[i-1].more, p.from)
		l.Epochs, l.Steps, made = l.Epochs+1, l.Steps+p.to-p.from, made+p.to-p.from
		l.Counted += p.count(l, worked)
		if len(p.readings) > 0 {
			l.Batches += p.last().given
		} else {
			l.Batches += (p.to - p.from) * l.PerStep
		}
		for at := p.from; at < p.to; at++ {
			if steps[at].Uncounted {
				l.Steps--
				if worked[at].Samples > 0 {
					l.Counted--
				}
			}
		}
	}
	if !whole || !sure || made < leastSteps*len(passes) {
		for i := range loaders {
			loaders[i].Epochs = 0
		}
		return loaders, worked
	}
	number(passes, worked)
	return loaders, worked
}

// bound finds the steps of each pass: it has those of the batches before its first reading, too.
func bound(passes []*pass, loaders []Loader, index map[int]int, steps int) {
	rates := ratesOf(passes)
	for i, p := range passes {
		first := p.first()
		before := int(math.Round(float64(first.given) * rates[p.loader])) // steps of its batches before the first reading
		if n := loaders[index[p.loader]].PerStep; n > 0 {
			before = first.given / n
		}
		least := 0
		if i > 0 {
			least = max(passes[i-1].last().steps, passes[i-1].from)
		}
		p.from, p.to = max(first.steps-before, least), steps
		if p.base = p.from; i > 0 {
			passes[i-1].to = p.from
		} else {
			p.base = first.steps - before
			p.from = max(p.base, 0)
		}
	}
}

// sameLength is up to which multiple the median steps of two trainings differ that have the same batches in all likelihood, as
// those of the folds of a cross-validation.
const sameLength = 1.25

// otherTraining reports whether a training begins at a step that is unlike the one before, which had batches of its own then.
func otherTraining(steps []Step, at int) bool {
	if !steps[at].Uncounted {
		return false
	}
	from, to := at, at+1
	for from > 0 && (from == at || !steps[from].Uncounted) {
		from--
	}
	for to < len(steps) && !steps[to].Uncounted {
		to++
	}
	before, after := medianLength(steps[from:at]), medianLength(steps[at+1:to])
	return max(before, after) > sameLength*min(before, after)
}

func medianLength(steps []Step) float64 {
	lengths := make([]timeline.Nanos, len(steps))
	for i, s := range steps {
		lengths[i] = s.End - s.Start
	}
	return float64(timeline.Median(lengths))
}

// within ends passes where another training begins, which has passes of its own. It reports whether no steps are then in none.
func within(passes []*pass, steps []Step) bool {
	whole := true
	for _, p := range passes {
		for i := max(p.last().steps, p.from+1); i < p.to; i++ {
			if otherTraining(steps, i) {
				p.to, whole = i, false
			}
		}
	}
	return whole
}

// number gives the steps of each pass the number of its epoch.
func number(passes []*pass, worked []Worked) {
	for epoch, p := range passes {
		for i := p.from; i < p.to; i++ {
			worked[i].Epoch = &epoch
		}
	}
}

// count fills in the samples of a pass's steps, where it is shown that they had all batches of a step, and returns of how many
// steps that is so. Which batch is the pass's last, and may be short, is known where the number of its samples is; else
// the last step has no samples. The batches of a stream's workers end one by one.
func (p *pass) count(l *Loader, worked []Worked) (counted int) {
	n, each := l.PerStep, int64(l.PerStep)*int64(l.Batch)
	if n == 0 || each == 0 || l.Stream && l.Workers > 1 && !l.DropLast {
		return 0
	}
	total := p.total(l)
	whole, begins := p.whole(n)
	made, expected := p.to-p.base, p.expected(l)
	all := begins && !p.late && total > 0 && made == expected // each had its batches, however they were fetched
	counts := all || begins && p.steady && made < expected
	for i := p.from; i < p.to; i++ {
		samples := each
		switch {
		case i == p.from && p.inherits:
			continue
		case !whole[i-p.from] && !all:
			continue
		case counts:
			samples = min(each, total-int64(i-p.base)*each)
		case l.DropLast && n == 1:
		case i == p.to-1:
			continue
		}
		if samples > 0 {
			worked[i].Samples = samples
			counted++
		}
	}
	return counted
}

// whole reports for each step of a pass whether it had all its batches, by the readings: those before the first reading and
// after the last one go on with what is between. begins reports whether the first step began with the pass's first batch.
func (p *pass) whole(perStep int) (whole []bool, begins bool) {
	whole = make([]bool, p.to-p.from)
	if p.steady = true; len(p.readings) == 0 {
		return whole, true
	}
	set := func(from, to int, is bool) {
		for i := max(from, p.from); i < min(to, p.to); i++ {
			whole[i-p.from] = is
		}
	}
	b := startBand(p.first(), perStep)
	low := b.low // of the first band
	for i := 1; i < len(p.readings); i++ {
		before, now := p.readings[i-1], p.readings[i]
		if high := b.high; !b.fits(now, perStep) {
			p.steady = false
			switch {
			case b.low > high: // a step was left out, or a batch fetched ahead
				p.late = p.late || now.steps > p.base
				p.more = append(p.more, now.steps) // which may have its batch
			case now.steps < p.to: // it had fewer batches, as the last one of a pass may
				p.late = true
			}
			continue
		}
		if set(before.steps, now.steps, true); p.steady {
			low = b.low
		}
	}
	begins = p.base >= -1 && low+perStep*p.base >= 0 && p.first().given-p.ahead+perStep*(p.base-p.first().steps) < perStep
	if begins {
		set(p.from, p.first().steps, true)
	} else { // it had batches of the pass before, too
		p.more = append(p.more, p.from)
	}
	if p.steady && p.alone {
		set(p.last().steps, p.to, true)
	}
	for _, step := range p.more {
		set(step, step+1, false)
	}
	return whole, begins
}
