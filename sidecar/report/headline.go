package report

import (
	"fmt"
	"strconv"
)

// headline is the answer in one sentence: the main finding, else the line that
// took most of the time, else why nothing can be said.
func headline(r *Report) string {
	if s := TooShort(r); s != "" {
		return s
	}
	if len(r.Findings) > 0 {
		return r.Findings[0].Text
	}
	if len(r.CellLines) > 0 && r.DurationS > 0 {
		l := r.CellLines[0]
		where := "line " + strconv.Itoa(l.Line)
		if l.File != r.LineFile {
			where = l.File + ":" + strconv.Itoa(l.Line)
		}
		if share := 100 * l.SelfS / r.DurationS; share >= 1 {
			return fmt.Sprintf("%.0f %% of the time in %s.", share, where)
		}
	}
	return ""
}

// fewSamples is the number below which shares of time are guesses.
const fewSamples = 20

// TooShort says that a recording has too few samples for its rate, and which
// rate would have given enough; it is empty where there are enough.
func TooShort(r *Report) string {
	s := r.Sampling
	longEnough := r.DurationS > 2*fewSamples*s.IntervalS // then it is no matter of the rate
	if s.Samples >= fewSamples || s.IntervalS <= 0 || r.DurationS <= 0 || longEnough {
		return ""
	}
	count := fmt.Sprintf("%d samples", s.Samples)
	if s.Samples == 1 {
		count = "1 sample"
	}
	// The sampler in the kernel is as fast as it can be.
	if faster := s.IntervalS / 10; faster >= 1e-5 && s.FallbackReason == "" {
		return fmt.Sprintf("%s; try -p %s", count, strconv.FormatFloat(faster, 'g', -1, 64))
	}
	return count
}
