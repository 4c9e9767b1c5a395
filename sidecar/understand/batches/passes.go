package batches

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// reading is a timeline.LoaderReading beside the steps.
type reading struct {
	at    timeline.Nanos
	steps int // that had ended
	given int // batches handed out before
}

// pass is one over a loader.
type pass struct {
	loader   int // index in Recording.Loaders
	readings []reading
	samples  int64 // of the whole pass; 0: not known
	from, to int   // the steps that it was for: all from one on to before another one
	base     int   // its first step: less than from, and than 0, where that was before the first one that is known
	ahead    int   // batches that were fetched before the first reading for a later step
	steady   bool  // no step had another number of batches than others
	late     bool  // if one had, it was not the first
	more     []int // steps that may have had more
	inherits bool  // the first step may have batches of the pass before
	alone    bool  // no other pass, which was not read, can be among its steps
}

func (p *pass) first() reading { return p.readings[0] }
func (p *pass) last() reading  { return p.readings[len(p.readings)-1] }

// passesOf are those of a process since its first step began, in the order of their begin.
func passesOf(rec *timeline.Recording, process int, steps []Step) (list []*pass) {
	type key struct{ loader, pass int }
	of := make(map[key]*pass)
	for _, r := range rec.Batches {
		if r.Loader < 0 || r.Loader >= len(rec.Loaders) || rec.Loaders[r.Loader].Process != process || r.At < steps[0].Start {
			continue
		}
		k := key{r.Loader, r.Pass}
		now := reading{at: r.At, given: int(r.Yielded), steps: sort.Search(len(steps), func(i int) bool { return steps[i].End > r.At })}
		p := of[k]
		if p == nil || now.given < p.last().given || now.at < p.last().at {
			p = &pass{loader: r.Loader}
			of[k], list = p, append(list, p)
		}
		p.readings, p.samples = append(p.readings, now), max(p.samples, r.Samples)
	}
	slices.SortStableFunc(list, func(a, b *pass) int { return cmp.Compare(a.first().at, b.first().at) })
	return list
}

// training are the passes that steps were made in, in order. Where two go on at the same time each step has
// batches of both, and there are none.
func training(all []*pass, steps int) (list []*pass) {
	rates := ratesOf(all)
	for i, p := range all {
		next := steps
		if i+1 < len(all) {
			after := all[i+1].first()
			next = after.steps - int(math.Round(float64(after.given)*rates[all[i+1].loader]))
		}
		// A pass without steps over a loader that is trained with is for something else.
		if rates[p.loader] == 0 || max(next, p.last().steps) <= p.first().steps {
			continue
		}
		if n := len(list); n > 0 && list[n-1].last().at > p.first().at {
			return nil
		}
		list = append(list, p)
	}
	return list
}

// ratesOf are how many steps there were for a batch, by loader: 0 of those that are not trained with.
func ratesOf(all []*pass) map[int]float64 {
	steps, batches := make(map[int]int), make(map[int]int)
	for _, p := range all {
		if made := p.last().steps - p.first().steps; made > 0 {
			steps[p.loader] += made
			batches[p.loader] += p.last().given - p.first().given
		}
	}
	rates := make(map[int]float64)
	for loader, n := range steps {
		rates[loader] = float64(n) / float64(max(batches[loader], 1))
	}
	return rates
}
