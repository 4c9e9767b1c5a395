package report

import (
	"github.com/omni-perf/omni-perf/sidecar/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/wording"
)

// addHeadline writes the answer in one sentence or two, and what it refers to.
func (r *Report) addHeadline(d *diagnose.Diagnosis, s wording.Scope) {
	r.Headline = s.Headline(d)
	r.TooFew = d.Headline.TooFew != nil
	if i, ok := d.Main(); ok {
		r.HeadlineFinding = &i
	}
	r.HeadlineLimits = notNil(d.Headline.Limits)
}
