package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/omni-perf/omni-perf/sidecar/api"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/glance"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// kernelCode stands in for a kernel: a cell is a line on stdin with how many
// milliseconds to work, its answer a line on stdout.
const kernelCode = `
import sys, time
source = "def work(until):\n    n = 0\n    while time.monotonic() < until:\n        n += sum(range(50))\n    return n\n"
cell = {"time": time}
exec(compile(source, "/tmp/ipykernel_1/42.py", "exec"), cell)
print("ready", flush=True)
for line in sys.stdin:
    cell["work"](time.monotonic() + int(line) / 1000)
    print("done", flush=True)
`

const cellText = "def work(until):\n    n = 0\n    while time.monotonic() < until:\n        n += sum(range(50))\n    return n\n"

// pythonKernel starts the stand-in; run makes it work.
func pythonKernel(t *testing.T) (pid int, run func(milliseconds int)) {
	t.Helper()
	cmd := exec.Command(truth.Any(t).Path, "-c", kernelCode)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	wait := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("the kernel said %q, want %q", lines.Text(), want)
		}
	}
	wait("ready")
	return cmd.Process.Pid, func(milliseconds int) {
		t.Helper()
		fmt.Fprintln(in, milliseconds)
		wait("done")
	}
}

// readReport unpacks what End returned.
func readReport(t *testing.T, packed []byte) *report.View {
	t.Helper()
	r, err := report.Read(packed)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// ranCell begins a cell of a kernel whose stacks can be read, and lets it run for 0.3 s;
// run lets it run on.
func ranCell(t *testing.T, codec string) (c api.OmniPerfClient, ctx context.Context, run func(milliseconds int)) {
	t.Helper()
	pid, run := pythonKernel(t)
	p := launch(t, pid, nil)
	c, ctx = p.client(t, codec, testToken)
	h, err := c.Hello(ctx, hello(pid))
	if err != nil {
		t.Fatal(err)
	}
	if h.Outside != outsideOK {
		t.Skipf("stacks cannot be read from outside here: %s", h.Reason)
	}
	_, err = c.Begin(ctx, &api.BeginRequest{
		CellId: "a", ExecutionCount: 42, Text: cellText, File: "/tmp/ipykernel_1/42.py",
		Name: "first", StartedNs: timeline.Monotonic(), ThreadId: int32(pid),
	})
	if err != nil {
		t.Fatal(err)
	}
	run(300)
	return c, ctx, run
}

func TestACellFromBeginToReport(t *testing.T) {
	for _, codec := range []string{"proto", "json"} {
		t.Run(codec, func(t *testing.T) {
			c, ctx, _ := ranCell(t, codec)
			resp, err := c.End(ctx, &api.EndRequest{CellId: "a", EndedNs: timeline.Monotonic(), Outcome: "ok", Form: "notebook"})
			if err != nil {
				t.Fatal(err)
			}
			r := readReport(t, resp.ReportGzip)
			if r.DurationNS < 3e8 || r.Name != "first" || r.Target().Cell == nil || *r.Target().Cell.ExecutionCount != 42 || r.Target().Cell.Outcome != "ok" {
				t.Errorf("report of %d ns named %q, target %+v", r.DurationNS, r.Name, r.Target())
			}
			if !slices.ContainsFunc(r.FunctionTimes, func(f report.FunctionTime) bool { return r.FunctionName(f.Function) == "work" && f.TotalNS > 1e8 }) {
				t.Errorf("functions %+v do not show where the time went", r.Functions)
			}
			for _, id := range []string{"cpu", "rss"} {
				if !slices.ContainsFunc(r.Tracks, func(tr report.Track) bool { return tr.ID == id && len(tr.AtUS) > 1 }) {
					t.Errorf("no track %s with points", id)
				}
			}
			if ticks := r.Target().Sampling.Ticks; ticks < 50 {
				t.Errorf("%d samples in %d ns", ticks, r.DurationNS)
			}
			checkKept(t, c, ctx, resp)
		})
	}
}

func TestShortAutomaticCellsLeaveARecordOnly(t *testing.T) {
	p := launch(t, os.Getpid(), nil)
	c, ctx := p.client(t, "json", testToken)
	for i, cell := range []struct {
		name      string
		threshold time.Duration
		kept      bool
	}{{"below", time.Hour, false}, {"above", 1, true}} {
		begin := &api.BeginRequest{
			CellId: cell.name, ExecutionCount: int32(i + 1), Text: "%%omni_perf\n\nx = 1\n" + strings.Repeat("y = 2\n", i),
			Automatic: true, ThresholdNs: int64(cell.threshold),
		}
		if _, err := c.Begin(ctx, begin); err != nil {
			t.Fatal(err)
		}
		resp, err := c.End(ctx, &api.EndRequest{CellId: cell.name, Outcome: "ok"})
		if err != nil {
			t.Fatal(err)
		}
		if got := resp.ReportId != ""; got != cell.kept {
			t.Errorf("%s the threshold: a report is kept: %v, want %v", cell.name, got, cell.kept)
		}
	}
	list, err := c.List(ctx, &api.ListRequest{})
	if err != nil || len(list.Entries) != 2 || list.Entries[0].ReportId != "" || list.Entries[0].FirstLine != "x = 1" || list.Entries[1].FirstLine != "x = 1 … y = 2" {
		t.Errorf("list %v, %v; want both cells, the first without a report", list, err)
	}
}

func TestACellTooShortForItsRateSaysSo(t *testing.T) {
	r := &report.View{Document: &report.Document{DurationNS: 5_200_000, Headline: report.Headline{Kind: report.HeadlineTooFew, Text: "Too short to profile: only 5 samples."}}}
	got := remarks(r, &api.BeginRequest{})
	if want := "The cell ran 5.2 ms. Too short to profile: only 5 samples."; len(got) != 1 || got[0] != want {
		t.Errorf("remarks %q, want %q", got, want)
	}
	if got := remarks(&report.View{Document: &report.Document{DurationNS: 3e9, Headline: report.Headline{Text: "Slept for 3.0 s."}}}, &api.BeginRequest{}); len(got) != 0 {
		t.Errorf("remarks %q about a cell that was long enough", got)
	}
	formatted := *r.Document
	formatted.Headline.Limits = []int{0}
	if got := remarks(&report.View{Document: &formatted}, &api.BeginRequest{}); len(got) != 0 {
		t.Errorf("a short cell whose traceback was formatted for long: %q, want none", got)
	}
	if got := remarks(r, &api.BeginRequest{Automatic: true}); len(got) != 0 {
		t.Errorf("nobody asked for this cell's profile, yet it says %q", got)
	}
}

func TestHugeSourcesAreTakenAndBounded(t *testing.T) {
	p := launch(t, os.Getpid(), nil)
	c, ctx := p.client(t, "json", testToken)
	text := strings.Repeat("x = 'a long line of a cell'\n", 1<<18) // 7 MB
	begin := &api.BeginRequest{CellId: "a", Text: text, File: "huge.py", Sources: []*api.CellSource{{File: "huge.py", Text: text}, {File: "other.py", Text: text}}}
	if _, err := c.Begin(ctx, begin); err != nil {
		t.Fatal(err)
	}
	resp, err := c.End(ctx, &api.EndRequest{CellId: "a", Outcome: "ok"})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(resp.ReportGzip); n > 1<<20 {
		t.Errorf("the report is %d bytes", n)
	}
}

func TestNamesFromPythonSurvive(t *testing.T) {
	p := launch(t, os.Getpid(), nil)
	c, ctx := p.client(t, "json", testToken)
	for _, text := range []string{"", "\x00", "<b>&\"'", "\u202eright to left", strings.Repeat("n", 10<<10)} {
		begin := &api.BeginRequest{CellId: text, Text: text, File: text, Name: text, Sources: []*api.CellSource{{File: text, Text: text}}}
		if _, err := c.Begin(ctx, begin); err != nil {
			t.Errorf("%.20q: %v", text, err)
			continue
		}
		resp, err := c.End(ctx, &api.EndRequest{CellId: text, Outcome: text})
		if err != nil {
			t.Errorf("%.20q: %v", text, err)
		} else if r := readReport(t, resp.ReportGzip); r.Target().Cell == nil {
			t.Errorf("%.20q: the report holds no cell", text)
		}
	}
}

func TestVersionsThatDoNotFitAreOneSentence(t *testing.T) {
	p := launch(t, os.Getpid(), nil)
	c, ctx := p.client(t, "json", testToken)
	req := hello(os.Getpid())
	req.Api = api.Number + 1
	if resp, err := c.Hello(ctx, req); err != nil || strings.Count(resp.Refusal, ".\n")+1 != 1 || !strings.Contains(resp.Refusal, "reinstall") {
		t.Errorf("another protocol: %v, %v", resp, err)
	}
	req = hello(os.Getpid())
	req.Version = "1.2.2"
	if resp, err := c.Hello(ctx, req); err != nil || resp.Refusal != "" || len(resp.Notes) != 1 || !strings.Contains(resp.Notes[0], "1.2.2") {
		t.Errorf("another version of the same protocol: %v, %v", resp, err)
	}
	if resp, err := c.Hello(ctx, hello(os.Getpid())); err != nil || resp.Outside != outsideFallback || resp.Reason == "" {
		t.Errorf("a kernel that is no CPython: %v, %v; want the fallback and a reason", resp, err)
	}
}

func TestCallsThatCannotBe(t *testing.T) {
	p := launch(t, os.Getpid(), nil)
	c, ctx := p.client(t, "json", testToken)
	if _, err := c.End(ctx, &api.EndRequest{CellId: "none"}); status.Code(err) != codes.NotFound {
		t.Errorf("End of nothing: %v", err)
	}
	if _, err := c.Report(ctx, &api.ReportRequest{}); status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), "There is no report yet") {
		t.Errorf("Report of nothing: %v", err)
	}
	if _, err := c.Report(ctx, &api.ReportRequest{ReportGzip: []byte("no gzip")}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("Report of noise: %v", err)
	}
	if _, err := c.Begin(ctx, &api.BeginRequest{CellId: "a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Begin(ctx, &api.BeginRequest{CellId: "a"}); status.Code(err) != codes.AlreadyExists {
		t.Errorf("Begin twice: %v", err)
	}
}

func TestFallbackSamplesMakeAReport(t *testing.T) {
	p := launch(t, os.Getpid(), nil) // no CPython: nothing is read from outside
	c, ctx := p.client(t, "json", testToken)
	if _, err := c.Hello(ctx, hello(os.Getpid())); err != nil {
		t.Fatal(err)
	}
	if b, err := c.Begin(ctx, &api.BeginRequest{CellId: "a", ThreadId: 7}); err != nil || b.Outside != outsideFallback {
		t.Fatalf("Begin: %v, %v", b, err)
	}
	start := timeline.Monotonic()
	push := &api.PushRequest{
		CellId: "a", CpuNs: 1000,
		Frames: []*api.PushRequest_Frame{{Id: 1, Function: "outer", File: "m.py", Line: 3, FirstLine: 1}, {Id: 2, Function: "inner", File: "m.py", Line: 9, FirstLine: 8},
			{Id: 3, Function: "outer", File: "m.py", FirstLine: 1, Elided: 500}},
		Stacks:  []*api.PushRequest_Stack{{Id: 1, Frames: []uint32{1}}, {Id: 2, Frames: []uint32{1, 3, 2}}, {Id: 3, Frames: []uint32{99}}},
		Threads: []*api.PushRequest_Thread{{ThreadId: 7, Name: "MainThread", Main: true}},
	}
	for i := range 20 {
		push.Samples = append(push.Samples, &api.PushRequest_Sample{AtNs: start + int64(i)*int64(time.Millisecond), ThreadId: 7, Stack: uint32(1 + i/10)})
	}
	push.Samples = append(push.Samples, &api.PushRequest_Sample{AtNs: start + int64(20*time.Millisecond), ThreadId: 8, Stack: 3})
	time.Sleep(25 * time.Millisecond)
	if _, err := c.Push(ctx, push); err != nil {
		t.Fatal(err)
	}
	resp, err := c.End(ctx, &api.EndRequest{CellId: "a", EndedNs: start + int64(25*time.Millisecond), Outcome: "ok"})
	if err != nil {
		t.Fatal(err)
	}
	r := readReport(t, resp.ReportGzip)
	if s := r.Target().Sampling; s.Fallback == nil || s.Method != timeline.MethodInside || s.Ticks != 21 || s.CPUNS == nil {
		t.Errorf("sampling %+v: it must say that and why the kernel sampled itself, and what it cost", s)
	}
	total := map[string]float64{}
	for _, f := range r.FunctionTimes {
		total[r.FunctionName(f.Function)] = report.Seconds(f.TotalNS)
	}
	if got := total["outer"]; got < 0.0199 || got > 0.0201 {
		t.Errorf("outer lasts %.4f s, want 0.02: functions %+v", got, r.Functions)
	}
	if got := total["inner"]; got < 0.0099 || got > 0.0101 {
		t.Errorf("inner lasts %.4f s, want 0.01", got)
	}
	if leftOut := "… about 500 frames, most of outer"; !slices.ContainsFunc(r.Functions, func(f report.Function) bool { return f.Label != nil && *f.Label == leftOut }) {
		t.Errorf("functions %+v, want one that names what was left out", r.Functions)
	}
}

func TestAnswersWhileSamplingOnOneCPU(t *testing.T) {
	taskset, err := exec.LookPath("taskset")
	if err != nil {
		t.Skip("no taskset to keep the sidecar on one CPU")
	}
	pid, run := pythonKernel(t)
	p := launch(t, pid, []string{taskset, "-c", "0"})
	var set unix.CPUSet
	set.Set(0)
	if err := unix.SchedSetaffinity(pid, &set); err != nil { // the kernel competes for it
		t.Skip(err)
	}
	c, ctx := p.client(t, "json", testToken)
	if _, err := c.Begin(ctx, &api.BeginRequest{CellId: "a", IntervalNs: int64(200 * time.Microsecond)}); err != nil {
		t.Fatal(err)
	}
	retry.Again(t, func(t *retry.Attempt) {
		worked := make(chan struct{})
		go func() {
			defer close(worked)
			run(500)
		}()
		var answers []time.Duration
		for working := true; working; {
			select {
			case <-worked:
				working = false
			default:
				start := time.Now()
				if _, err := c.Status(ctx, &api.StatusRequest{}); err != nil {
					t.Fatal(err)
				}
				answers = append(answers, time.Since(start))
				time.Sleep(5 * time.Millisecond)
			}
		}
		slices.Sort(answers)
		if len(answers) < 5 {
			t.Errorf("only %d answers while the cell ran: %v", len(answers), answers)
		}
		t.Logf("%d answers, median %v, longest %v", len(answers), answers[len(answers)/2], answers[len(answers)-1])
	})
}

func TestClipLineAndFirstLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                              "",
		"%%omni_perf -p 1\n# c\n  x=1 ": "x=1",
		strings.Repeat("é", 200):        strings.Repeat("é", 120) + "…",
		strings.Repeat("\xff", 5000):    "…",
	} {
		if got := clipLine(glance.FirstLine(in)); got != want {
			t.Errorf("first line of %.30q is %q, want %q", in, got, want)
		}
	}
}

// checkKept asks for what End has left on the shelf.
func checkKept(t *testing.T, c api.OmniPerfClient, ctx context.Context, resp *api.EndResponse) {
	t.Helper()
	kept, err := c.Report(ctx, &api.ReportRequest{ReportId: resp.ReportId, Format: "json"})
	if err != nil {
		t.Fatal(err)
	}
	want, err := report.Unpack(resp.ReportGzip)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(kept.Content, want) || kept.MediaType != "application/json" {
		t.Error("the kept report is not the one End returned")
	}
	list, err := c.List(ctx, &api.ListRequest{})
	if err != nil || len(list.Entries) != 1 || list.Entries[0].ReportId != resp.ReportId || list.Entries[0].Outcome != "ok" {
		t.Errorf("list %v, %v", list, err)
	}
	st, err := c.Status(ctx, &api.StatusRequest{})
	if err != nil || st.Reports != 1 || st.ReportBytes == 0 || st.RssBytes == 0 || st.Outside != outsideOK {
		t.Errorf("status %v, %v", st, err)
	}
}
