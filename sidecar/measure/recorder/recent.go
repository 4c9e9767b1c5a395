package recorder

import (
	"fmt"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Recent is what a recording in progress saw since an instant of CLOCK_MONOTONIC. It
// costs what that time holds, however long the recording lasts, and may be asked for
// each second. began is when the recording did.
func (r *Recorder) Recent(id string, from int64) (rec *timeline.Recording, began int64, err error) {
	r.mu.Lock()
	c, run, target := r.cells[id], r.run, r.opts.Target
	r.mu.Unlock()
	if c == nil {
		return nil, 0, fmt.Errorf("%w: %q", ErrUnknown, id)
	}
	b := run.Builder
	rec = b.Recent(b.Since(max(from, c.started)), b.Since(r.opts.Clock()))
	r.describe(rec, run, func() { c.describe(rec, target, Ending{}, c.first) })
	return rec, c.started, nil
}
