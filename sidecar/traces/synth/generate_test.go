package synth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"sort"
	"strings"
	"testing"
	"time"
)

var training = Config{
	Seed: 7, Ranks: 4, Steps: 4, DataWait: 300 * time.Microsecond, Straggler: 2, StragglerDelay: 3 * time.Millisecond,
	ClockSkew: 5 * time.Millisecond, Stacks: true, Memory: true,
}

func generate(t *testing.T, cfg Config) (*Answers, []*bytes.Buffer) {
	t.Helper()
	buffers := make([]*bytes.Buffer, max(1, cfg.Ranks))
	writers := make([]io.Writer, len(buffers))
	for i := range buffers {
		buffers[i] = new(bytes.Buffer)
		writers[i] = buffers[i]
	}
	answers, err := Generate(cfg, writers)
	if err != nil {
		t.Fatal(err)
	}
	return answers, buffers
}

type jsonEvent struct {
	Ph, Cat, Name string
	Ts, Dur       json.Number
	Args          struct {
		Device, Stream, Correlation int64
		Bytes                       *int64
		Total                       int64 `json:"Total Allocated"`
	}
}

type jsonTrace struct {
	DistributedInfo struct{ Rank int }
	TraceEvents     []jsonEvent
}

func decode(t *testing.T, text []byte) jsonTrace {
	t.Helper()
	var trace jsonTrace
	if err := json.Unmarshal(text, &trace); err != nil {
		t.Fatalf("the trace is not JSON: %v", err)
	}
	return trace
}

func nanos(t *testing.T, n json.Number) int64 {
	t.Helper()
	whole, decimals, _ := strings.Cut(n.String(), ".")
	var ns int64
	if _, err := fmt.Sscan(whole+decimals, &ns); err != nil || len(decimals) != 3 {
		t.Fatalf("time %q does not have three decimals", n)
	}
	return ns
}

// union merges intervals and sums their lengths.
func union(list []interval) (merged []interval, length int64) {
	sort.Slice(list, func(i, j int) bool { return list[i].start < list[j].start })
	for _, i := range list {
		if n := len(merged); n > 0 && i.start <= merged[n-1].end {
			merged[n-1].end = max(merged[n-1].end, i.end)
		} else {
			merged = append(merged, i)
		}
	}
	for _, i := range merged {
		length += i.end - i.start
	}
	return merged, length
}

// TestAnswersAgreeWithTheText: the answers are counted while simulating; here
// the same figures come from the written text by sorting and merging.
func TestAnswersAgreeWithTheText(t *testing.T) {
	several := Config{Seed: 8, Devices: 3, Steps: 4, Layers: 30, DataWait: 200 * time.Microsecond, Memory: true}
	for name, cfg := range map[string]Config{"ranks": training, "devices": several} {
		t.Run(name, func(t *testing.T) {
			answers, texts := generate(t, cfg)
			for r, buffer := range texts {
				agrees(t, decode(t, buffer.Bytes()), answers.Ranks[r])
			}
		})
	}
}

// written is what the text says that a device did.
type written struct{ all, compute, comm []interval }

func agrees(t *testing.T, trace jsonTrace, answers RankAnswers) {
	t.Helper()
	if trace.DistributedInfo.Rank != answers.Rank {
		t.Errorf("rank = %d, want %d", trace.DistributedInfo.Rank, answers.Rank)
	}
	devices := map[int64]*written{}
	first, last, launches := int64(math.MaxInt64), int64(0), int64(0)
	for _, e := range trace.TraceEvents {
		if e.Cat != "kernel" && e.Cat != "gpu_memcpy" {
			continue
		}
		at := interval{start: nanos(t, e.Ts)}
		at.end = at.start + nanos(t, e.Dur)
		first, last = min(first, at.start), max(last, at.end)
		launches++
		d := devices[e.Args.Device]
		if d == nil {
			d = &written{}
			devices[e.Args.Device] = d
		}
		d.all = append(d.all, at)
		switch {
		case strings.HasPrefix(e.Name, "nccl"):
			d.comm = append(d.comm, at)
		case e.Cat == "kernel":
			d.compute = append(d.compute, at)
		}
	}
	a := answers.All
	var busy, computed, communicated, overlap int64
	for number, d := range devices {
		_, busyHere := union(d.all)
		computing, computedHere := union(d.compute)
		communicating, communicatedHere := union(d.comm)
		busy, computed, communicated = busy+busyHere, computed+computedHere, communicated+communicatedHere
		for _, a := range computing {
			for _, b := range communicating {
				overlap += a.overlap(b)
			}
		}
		if len(devices) > 1 && (a.Devices[number].Busy != busyHere || a.Devices[number].Compute != computedHere) {
			t.Errorf("device %d: got %+v, the text says busy %d, computing %d", number, a.Devices[number], busyHere, computedHere)
		}
	}
	window := int64(len(devices)) * (last - first)
	for _, figure := range []struct {
		name      string
		got, want int64
	}{
		{"kernel time", a.KernelTime, window},
		{"idle", a.Idle, window - busy},
		{"compute", a.Compute, computed},
		{"communication", a.Communication, communicated},
		{"overlap", a.Overlap, overlap},
		{"launches", int64(a.Launches), launches},
		{"events", answers.Events, int64(len(trace.TraceEvents))},
	} {
		if figure.got != figure.want {
			t.Errorf("rank %d: %s = %d, the text says %d", answers.Rank, figure.name, figure.got, figure.want)
		}
	}
	if a.Idle == 0 || a.PeakAllocated == 0 || a.Communication > 0 && a.Overlap == 0 {
		t.Errorf("rank %d: idle %d, overlap %d, peak %d: a run should have them all", answers.Rank, a.Idle, a.Overlap, a.PeakAllocated)
	}
}

func TestStreamGapsAreDivided(t *testing.T) {
	answers, _ := generate(t, training)
	for _, r := range answers.Ranks {
		s := r.All.Streams[computeStream]
		if s.HostWait == 0 || s.KernelWait == 0 || s.Other == 0 {
			t.Errorf("rank %d: gaps %+v, want all three causes", r.Rank, s)
		}
	}
}

func TestStragglerIsLast(t *testing.T) {
	answers, _ := generate(t, training)
	if len(answers.Collectives) != 2*training.Steps {
		t.Fatalf("%d collectives, want %d", len(answers.Collectives), 2*training.Steps)
	}
	for _, c := range answers.Collectives {
		if c.Bucket == 0 && c.Last != training.Straggler {
			t.Errorf("step %d: rank %d was last, want %d", c.Step, c.Last, training.Straggler)
		}
		if c.Transfer() <= 0 {
			t.Errorf("step %d: transfer %d", c.Step, c.Transfer())
		}
	}
}

func TestLastStepIsLeftOutOfKept(t *testing.T) {
	answers, _ := generate(t, training)
	longer := training
	longer.Steps++
	more, _ := generate(t, longer)
	for r := range answers.Ranks {
		if got, want := more.Ranks[r].Kept.Idle, answers.Ranks[r].All.Idle; got != want {
			t.Errorf("rank %d: kept idle of %d steps = %d, all of %d steps = %d", r, longer.Steps, got, training.Steps, want)
		}
	}
}

func TestSameSeedSameBytes(t *testing.T) {
	_, a := generate(t, training)
	_, b := generate(t, training)
	other := training
	other.Seed++
	_, c := generate(t, other)
	if !bytes.Equal(a[1].Bytes(), b[1].Bytes()) {
		t.Error("the same configuration gave different traces")
	}
	if bytes.Equal(a[1].Bytes(), c[1].Bytes()) {
		t.Error("another seed gave the same trace")
	}
}

func TestSizeIsReached(t *testing.T) {
	cfg := Config{Ranks: 2, Bytes: 3 << 20}
	answers, texts := generate(t, cfg)
	for r, b := range texts {
		if int64(b.Len()) < cfg.Bytes || answers.Ranks[r].Bytes != int64(b.Len()) {
			t.Errorf("rank %d: %d bytes, counted %d, want at least %d", r, b.Len(), answers.Ranks[r].Bytes, cfg.Bytes)
		}
	}
}

func TestWriteErrorIsReported(t *testing.T) {
	if _, err := Generate(Config{Bytes: 1 << 40}, []io.Writer{full{}}); err == nil {
		t.Error("a writer that fails gave no error")
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func BenchmarkGenerate(b *testing.B) {
	var bytes int64
	for b.Loop() {
		a, err := Generate(Config{Bytes: 32 << 20}, []io.Writer{io.Discard})
		if err != nil {
			b.Fatal(err)
		}
		bytes = a.Ranks[0].Bytes
	}
	b.SetBytes(bytes)
}
