package batches

import "math"

// A step is of perStep batches: with gradient accumulation of some. While a pass goes on, the batches that it has handed out
// less those of the steps that have ended are from 0 to perStep-1, or from another number on where batches are
// fetched ahead. A step that was left out, as a gradient scaler does, or one that had other batches, moves that.

// band is what the batches that no step has used yet were since they last moved.
type band struct{ low, high int }

// fits reports whether a reading goes on with the band; if not, the band begins anew with it.
func (b *band) fits(r reading, perStep int) bool {
	left := r.given - perStep*r.steps
	low, high := min(b.low, left), max(b.high, left)
	if high-low >= perStep {
		*b = band{left, left}
		return false
	}
	*b = band{low, high}
	return true
}

func startBand(r reading, perStep int) band {
	left := r.given - perStep*r.steps
	return band{left, left}
}

const maxPerStep = 1 << 12

// perStep is how many batches the steps of passes over one loader are of; 0: not known.
func perStep(passes []*pass) int {
	batches, steps := 0, 0
	for _, p := range passes {
		batches += p.last().given - p.first().given
		steps += p.last().steps - p.first().steps
	}
	if steps == 0 || batches == 0 {
		return 0
	}
	mean := float64(batches) / float64(steps)
	best, alone := score{moves: math.MaxInt}, false
	for n := max(int(mean/2), 1); n <= min(int(2*mean)+2, maxPerStep); n++ {
		switch s := scoreOf(passes, n); {
		case s.better(best):
			best, alone = s, true
		case !best.better(s):
			alone = false
		}
	}
	if !alone || 2*best.steps < steps || best.moves > best.steps {
		return 0
	}
	return best.perStep
}

// score is how well readings fit a number of batches: how often their band moved, and the steps in between.
type score struct{ perStep, moves, steps int }

func (s score) better(than score) bool {
	return s.moves < than.moves || s.moves == than.moves && s.steps > than.steps
}

func scoreOf(passes []*pass, perStep int) score {
	s := score{perStep: perStep}
	for _, p := range passes {
		b := startBand(p.first(), perStep)
		for i := 1; i < len(p.readings); i++ {
			if b.fits(p.readings[i], perStep) {
				s.steps += p.readings[i].steps - p.readings[i-1].steps
			} else {
				s.moves++
			}
		}
	}
	return s
}
