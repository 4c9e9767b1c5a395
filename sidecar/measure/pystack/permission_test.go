package pystack

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// refusingMemory is a Memory that may not be read from some time on.
type refusingMemory struct {
	Memory
	from int64 // CLOCK_MONOTONIC
}

func (m *refusingMemory) Read(buf []byte, ranges []Range) (int, error) {
	if timeline.Monotonic() >= m.from {
		return 0, ErrPermission
	}
	return m.Memory.Read(buf, ranges)
}

// TestALostPermission takes the permission away in the midst of a recording, as prctl(PR_SET_DUMPABLE) does,
// and gives it back.
func TestALostPermission(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		target := truth.Start(t, python, truth.Work)
		retry.Again(t, func(t *retry.Attempt) {
			const read, refused = 200 * time.Millisecond, 300 * time.Millisecond
			p := attachTo(t, target)
			memory := p.mem
			refusing := &refusingMemory{memory, timeline.Monotonic() + int64(read)}
			p.mem, p.reader.mem.Memory = refusing, refusing
			tape := newTape()
			if _, err := p.Sample(context.Background(), tape, SampleOptions{}); !errors.Is(err, ErrPermission) {
				t.Fatalf("got %v, want ErrPermission", err)
			}
			time.Sleep(refused)
			p.mem, p.reader.mem.Memory = memory, memory
			ctx, cancel := context.WithTimeout(context.Background(), read)
			defer cancel()
			if _, err := p.Sample(ctx, tape, SampleOptions{}); err != nil {
				t.Fatal(err)
			}
			rec := tape.Snapshot(tape.Since(timeline.Monotonic()))
			if len(rec.Gaps) != 1 || rec.Gaps[0].Reason != timeline.GapPermission || (rec.Gaps[0].End-rec.Gaps[0].Start).Duration() < refused {
				t.Fatalf("gaps %+v, want one of at least %v for the permission", rec.Gaps, refused)
			}
			gap := rec.Gaps[0]
			if len(rec.Threads) != 1 {
				t.Fatalf("%d lanes, want one that goes on", len(rec.Threads))
			}
			if n := gap.Start - timeline.Nanos(read); n > timeline.Nanos(20*time.Millisecond) {
				t.Errorf("the last good read was at %v, want about %v", gap.Start.Duration(), read)
			}
			for _, s := range rec.Threads[0].Spans {
				within := min(s.End, gap.End) - max(s.Start, gap.Start)
				if within > timeline.Nanos(20*time.Millisecond) && (s.State != timeline.StateUnknown || s.Node != timeline.RootNode) {
					t.Errorf("for %v of the gap it is %v", within.Duration(), s.State)
				}
			}
			if last := rec.Threads[0].Spans[len(rec.Threads[0].Spans)-1]; last.State == timeline.StateUnknown {
				t.Error("it is still unknown at the end")
			}
		})
	})
}
