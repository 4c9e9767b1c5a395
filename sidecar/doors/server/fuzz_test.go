package server

import (
	"log/slog"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/omni-perf/omni-perf/sidecar/api"
	"github.com/omni-perf/omni-perf/sidecar/doors/display"
	"github.com/omni-perf/omni-perf/sidecar/measure/recorder"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// The samples of the in-kernel sampler lean on frames and stacks of earlier calls,
// which may be missing, and on times of the kernel's.
func FuzzPush(f *testing.F) {
	f.Add([]byte(`{"frames":[{"id":1,"function":"f","file":"x.py","line":3,"firstLine":1}],"stacks":[{"id":2,"frames":[1]}],
		"threads":[{"threadId":"7","name":"MainThread","main":true}],"samples":[{"atNs":"10","threadId":"7","stack":2},{"atNs":"20","threadId":"8","stack":9}],"cpuNs":"5"}`))
	f.Add([]byte(`{"stacks":[{"id":2,"frames":[9,9,9]}],"samples":[{"atNs":"-9223372036854775808","threadId":"-1","stack":2},{"atNs":"9223372036854775807","stack":4294967295}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		req := new(api.PushRequest)
		if (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, req) != nil {
			return
		}
		s := NewSession(Start{KernelPID: 7, Log: slog.New(slog.DiscardHandler)}, Tools{
			Recorder: recorder.New(recorder.Options{Target: timeline.Target{PID: 7}}),
			Analyse:  func(rec *timeline.Recording) (*report.View, error) { return report.Build(rec, nil, report.Options{}) },
		})
		defer s.Close()
		ctx := t.Context()
		if _, err := s.Begin(ctx, &api.BeginRequest{CellId: "1"}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := s.Push(ctx, req); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.End(ctx, &api.EndRequest{CellId: "1", Quiet: true}); err != nil {
			t.Fatal(err)
		}
	})
}

// A kernel keeps reports and sends them back to be drawn.
func FuzzUnpack(f *testing.F) {
	r, err := report.Build(timeline.NewBuilder(timeline.Options{Origin: 1}).Snapshot(1e9), nil, report.Options{})
	if err != nil {
		f.Fatal(err)
	}
	packed, err := report.Pack(r.Document)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packed, "svg")
	f.Add(packed[:len(packed)/2], "bundle")
	f.Add([]byte{0x1f, 0x8b}, "text")
	s := NewSession(Start{KernelPID: 7, Log: slog.New(slog.DiscardHandler)}, Tools{Recorder: recorder.New(recorder.Options{}), Present: display.Charts{}})
	f.Fuzz(func(t *testing.T, packed []byte, format string) {
		_, _ = s.Report(t.Context(), &api.ReportRequest{ReportGzip: packed, Format: format})
	})
}

// A datagram comes from whoever is the same user.
func FuzzAnnouncement(f *testing.F) {
	f.Add([]byte(`{"token":"t","begin":{"cellId":"1","automatic":true,"startedNs":"5","coroutine":"7"},"delay_ns":5000000}`))
	f.Add([]byte(`{"token":"t","over":"1"}`))
	f.Add([]byte(`{"token":"t","begin":{"cellId":"1","children":"no such"},"delay_ns":-9223372036854775808}`))
	s := NewSession(Start{KernelPID: 7, Log: slog.New(slog.DiscardHandler)}, Tools{
		Recorder: recorder.New(recorder.Options{Target: timeline.Target{PID: 7}}),
		Analyse:  func(rec *timeline.Recording) (*report.View, error) { return report.Build(rec, nil, report.Options{}) },
	})
	f.Fuzz(func(t *testing.T, text []byte) {
		a, ok := parseAnnouncement(text, "t")
		if _, other := parseAnnouncement(text, "another"); other && ok {
			t.Fatal("two tokens are right")
		}
		if !ok {
			return
		}
		if a.Delay < 0 || a.Delay > maxDelay || a.Begin != nil && a.Begin.CellId == "" {
			t.Fatalf("%+v", a)
		}
		s.Announced(a)
		if a.Begin != nil {
			s.Announced(Announcement{Over: a.Begin.CellId})
			_, _ = s.End(t.Context(), &api.EndRequest{CellId: a.Begin.CellId, Quiet: true})
		}
	})
}
