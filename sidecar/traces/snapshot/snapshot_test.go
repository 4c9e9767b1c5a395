package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

const mib = 1 << 20

// python runs a script of this package's testdata, or the given code.
func python(t testing.TB, args ...string) {
	t.Helper()
	out, err := exec.Command(truth.OnPath(t), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("python3: %v\n%s", err, out)
	}
}

func pickled(t testing.TB, protocol int) *Snapshot {
	t.Helper()
	path := filepath.Join(t.TempDir(), "snapshot.pickle")
	python(t, "testdata/make_snapshot.py", strconv.Itoa(protocol), path)
	s, err := ReadFile(path)
	if err != nil {
		t.Fatalf("protocol %d: %v", protocol, err)
	}
	return s
}

func TestReadAllProtocols(t *testing.T) {
	for protocol := 2; protocol <= 5; protocol++ {
		s := pickled(t, protocol)
		if len(s.Segments) != 1 || len(s.Devices) != 2 {
			t.Fatalf("protocol %d: %d segments, %d devices, want 1 and 2", protocol, len(s.Segments), len(s.Devices))
		}
		if got := len(s.Segments[0].Blocks); got != 5 {
			t.Errorf("protocol %d: %d blocks, want 5", protocol, got)
		}
		if got := len(s.Devices[0].Events); got != 47 {
			t.Errorf("protocol %d: %d events, want 47", protocol, got)
		}
		// model, forward, backward, optimizer and the empty stack
		if got := len(s.Stacks); got != 5 {
			t.Errorf("protocol %d: %d stacks, want 5", protocol, got)
		}
		for i, e := range s.Devices[0].Events {
			if len(s.Stacks[e.Stack]) != 2 {
				t.Errorf("protocol %d: event %d has a stack of %d frames, want 2: shared lists must not be lost", protocol, i, len(s.Stacks[e.Stack]))
				break
			}
		}
		if got, want := s.Place(s.Devices[0].Events[2].Stack), "/home/me/model.py(33): forward"; got != want {
			t.Errorf("protocol %d: place %q, want %q", protocol, got, want)
		}
	}
}

func find(tables []*table.Table, name string) *table.Table {
	for _, t := range tables {
		if t.Name == name {
			return t
		}
	}
	return nil
}

func TestPeakIsDividedByStack(t *testing.T) {
	peak := find(Analyze(pickled(t, 4), Options{}), TablePeak)
	want := map[string]int64{"parameters": 8 * mib, "activations": 16 * mib, "backward": 2 * mib, "optimizer": 16 * mib}
	got := map[string]int64{}
	for r := range peak.Len() {
		got[peak.Column("category").Text[r]] += peak.Column("bytes").Ints[r]
	}
	for category, bytes := range want {
		if got[category] != bytes {
			t.Errorf("%s at the peak: %d bytes, want %d", category, got[category], bytes)
		}
	}
	if len(got) != len(want) {
		t.Errorf("categories at the peak: %v, want %v", got, want)
	}
	if n := peak.Column("blocks").Ints[0] + peak.Column("blocks").Ints[1]; n != 5 {
		t.Errorf("the two largest places have %d blocks, want 4 activations and 1 optimizer state", n)
	}
}

func TestTimelineKeepsThePeak(t *testing.T) {
	s := pickled(t, 5)
	for _, points := range []int{1, 7, 1000} {
		timeline := find(Analyze(s, Options{Points: points}), TableTimeline)
		at := map[float64]int64{}
		var most int64
		for r := range timeline.Len() {
			when := timeline.Column("time_us").Floats[r]
			at[when] += timeline.Column("allocated_bytes").Ints[r]
			most = max(most, at[when])
			if got := timeline.Column("reserved_bytes").Ints[r]; got != 64*mib {
				t.Fatalf("reserved %d at %g µs, want %d", got, when, 64*mib)
			}
		}
		if want := int64(42 * mib); most != want {
			t.Errorf("%d points: peak %d, want %d", points, most, want)
		}
	}
}

func TestTimelineByPlaceAddsUp(t *testing.T) {
	tables := Analyze(pickled(t, 4), Options{Points: 20})
	sum := func(table *table.Table) map[float64]int64 {
		at := map[float64]int64{}
		for r := range table.Len() {
			at[table.Column("time_us").Floats[r]] += table.Column("allocated_bytes").Ints[r]
		}
		return at
	}
	categories, places := sum(find(tables, TableTimeline)), sum(find(tables, TablePlaces))
	if len(places) != 20 {
		t.Errorf("%d moments, want 20", len(places))
	}
	for when, total := range places {
		if categories[when] != total {
			t.Errorf("at %g µs the places have %d bytes, the categories %d", when, total, categories[when])
		}
	}
	names := map[string]bool{}
	for _, place := range find(tables, TablePlaces).Column("place").Text {
		names[place] = true
	}
	if !names["/home/me/model.py(33): forward"] || !names["(everything else)"] {
		t.Errorf("places %v, want the forward pass among them", names)
	}
}

func TestHistoryThatBeginsLate(t *testing.T) {
	s := pickled(t, 4)
	s.Devices[0].Events = s.Devices[0].Events[20:] // the ring has dropped the first ones
	timeline := find(Analyze(s, Options{}), TableTimeline)
	last := timeline.Column("time_us").Floats[timeline.Len()-1]
	var end int64
	for r := range timeline.Len() {
		if timeline.Column("time_us").Floats[r] == last {
			end += timeline.Column("allocated_bytes").Ints[r]
		}
	}
	if want := int64(24*mib + 700); end != want {
		t.Errorf("in use at the end: %d, want %d as the segments say", end, want)
	}
}

func TestFragmentation(t *testing.T) {
	table := find(Analyze(pickled(t, 4), Options{}), TableFragmentation)
	if table.Len() != 2 {
		t.Fatalf("%d rows, want large and all", table.Len())
	}
	row := func(name string) int64 { return table.Column(name).Ints[1] }
	if row("reserved_bytes") != 64*mib || row("used_bytes")+row("free_bytes") != 64*mib {
		t.Errorf("reserved %d, used %d, free %d do not add up to 64 MiB", row("reserved_bytes"), row("used_bytes"), row("free_bytes"))
	}
	if got := row("requested_bytes"); got != 24*mib+700 {
		t.Errorf("requested %d, want %d", got, 24*mib+700)
	}
	want := 1 - float64(22*mib)/float64(22*mib+18*mib-1024)
	if got := table.Column("fragmented_share").Floats[1]; math.Abs(got-want) > 1e-9 {
		t.Errorf("fragmentation %g, want %g", got, want)
	}
}

func TestSmallBlocksAreFolded(t *testing.T) {
	tables := Analyze(pickled(t, 4), Options{MinBytes: mib})
	live := find(tables, TableLive)
	if live.Len() != 2 {
		t.Errorf("%d stacks with live blocks of at least 1 MiB, want 2", live.Len())
	}
	if got := live.IntAt("bytes", 0); got != 16*mib {
		t.Errorf("the largest has %d bytes, want 16 MiB", got)
	}
	if want := "1 blocks below 1048576 bytes are left out, 1024 bytes together."; live.Note != want {
		t.Errorf("note %q, want %q", live.Note, want)
	}
}

func TestOutOfMemory(t *testing.T) {
	table := find(Analyze(pickled(t, 4), Options{}), TableOutOfMemory)
	if table.Len() != 1 || table.Column("requested_bytes").Ints[0] != 100*mib || table.Column("device_free_bytes").Ints[0] != 3*mib {
		t.Errorf("out of memory: %d rows, want one of 100 MiB with 3 MiB free", table.Len())
	}
}

func TestBlocksOfOlderPyTorch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.pickle")
	python(t, "-c", `
import pickle, sys
frames = [{"filename": "/home/me/train.py", "line": 3, "name": "build"}]
blocks = [{"size": 1024, "state": "active_allocated", "history": [{"addr": 512, "real_size": 700, "frames": frames}]},
          {"size": 2048, "state": "active_pending_free"}, {"size": 512, "state": "inactive"}]
segment = {"device": 0, "address": 512, "total_size": 3584, "stream": 0, "segment_type": "small", "blocks": blocks}
with open(sys.argv[1], "wb") as out:
    pickle.dump({"segments": [segment], "device_traces": []}, out)
`, path)
	s, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	blocks := s.Segments[0].Blocks
	first, second := blocks[0], blocks[1]
	if first.Requested != 700 || s.Place(first.Stack) != "/home/me/train.py(3): build" {
		t.Errorf("the first block asked for %d bytes at %s", first.Requested, s.Place(first.Stack))
	}
	if second.State != AwaitingFree || second.Address != 512+1024 || blocks[2].State != Inactive {
		t.Errorf("the second block is %+v", second)
	}
	if len(s.Notes) != 1 {
		t.Errorf("notes %q, want one about the missing history", s.Notes)
	}
}

func TestCodeIsRefused(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "ran")
	for _, code := range []string{
		`import os; X = type("X", (), {"__reduce__": lambda self: (os.system, ("touch ` + marker + `",))})`,
		`import collections; X = lambda: collections.OrderedDict(a=1)`,
		`import fractions; X = lambda: fractions.Fraction(1, 3)`,
	} {
		path := filepath.Join(t.TempDir(), "evil.pickle")
		python(t, "-c", code+`
import pickle, sys
for protocol in range(6):
    with open(sys.argv[1] + str(protocol), "wb") as out:
        pickle.dump({"segments": [X()], "device_traces": []}, out, protocol=protocol)
`, path)
		for protocol := range 6 {
			want := ErrNotPlain
			if protocol < 2 { // which torch does not write and this does not begin to read
				want = ErrNoPickle
			}
			if _, err := ReadFile(path + strconv.Itoa(protocol)); !errors.Is(err, want) {
				t.Errorf("protocol %d of %s: error %v, want %v", protocol, code, err, want)
			}
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("reading a pickle ran its code")
	}
}

func TestDamagedAndForeign(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot.pickle")
	python(t, "testdata/make_snapshot.py", "4", path)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{1, 100, len(whole) / 2, len(whole) - 1} {
		if _, err := Read(bytes.NewReader(whole[:cut]), Limits{}); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "ends in the middle") {
			t.Errorf("a pickle cut at byte %d of %d: %v, want one that says so", cut, len(whole), err)
		}
	}
	for name, text := range map[string]string{
		"a number":         "\x80\x04K\x01.",
		"a list":           "\x80\x04].",
		"an empty dict":    "\x80\x04}.",
		"a text":           "hello",
		"huge text length": "\x80\x04X\xff\xff\xff\x7fabc.",
		"append to number": "\x80\x04K\x01K\x02a.",
		"odd items":        "\x80\x04}(K\x01u.",
		"an unknown note":  "\x80\x04]h\x07a.",
		"a forged filling": "\x80\x04]]\x86Q.",
	} {
		if _, err := Read(strings.NewReader(text), Limits{}); err == nil {
			t.Errorf("%s was read as a snapshot", name)
		}
	}
}

// TestRefusalsAreTrue: what is said of a file that is not read is so.
func TestRefusalsAreTrue(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		is   error
		says string
	}{
		"nothing":            {"", ErrNoPickle, "the file is empty"},
		"torch.save":         {"PK\x03\x04rest of a zip", ErrNoPickle, "a zip archive, as torch.save writes"},
		"a trace":            {`{"traceEvents": []}`, ErrNoPickle, "JSON by its first byte"},
		"text":               {"hello", ErrNoPickle, "begins with byte 0x68"},
		"protocol 0":         {"(dp0\n.", ErrNoPickle, "protocol 2 or later"},
		"an import":          {"\x80\x04cos\nsystem\n.", ErrNotPlain, "GLOBAL at byte 2"},
		"a call":             {"\x80\x04)R.", ErrNotPlain, "REDUCE at byte 3"},
		"a set":              {"\x80\x04\x8f.", nil, "torch does not write (0x8f at byte 2)"},
		"no instruction":     {"\x80\x04\xf7.", ErrDamaged, "byte 2, 0xf7, is no instruction"},
		"another dictionary": {"\x80\x04}.", ErrOther, "neither segments nor device_traces"},
	} {
		_, err := Read(strings.NewReader(c.text), Limits{})
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want it to say %q", name, err, c.says)
		}
	}
}

// full is a snapshot of torch 2.15 with C++ frames, pinned host memory and all.
func full(t testing.TB, name string) *Snapshot {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	python(t, "testdata/make_full_snapshot.py", path)
	s, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPlacesSkipTheMachinery(t *testing.T) {
	s := full(t, "snapshot.pickle")
	peak := find(Analyze(s, Options{}), TablePeak)
	got := map[string]int64{}
	for r := range peak.Len() {
		if peak.TextAt("device", r) == "device 0" {
			got[peak.TextAt("category", r)+" "+peak.TextAt("place", r)] += peak.IntAt("bytes", r)
		}
		if stack := peak.TextAt("stack", r); strings.Contains(stack, "unwind") || strings.Contains(stack, "PyEval") || strings.Contains(stack, "??") {
			t.Errorf("the stack %q has what every allocation has", stack)
		}
	}
	want := map[string]int64{
		"parameters /home/me/train.py(12): build_model":                                          8 * mib,
		"activations /home/me/model.py(33): forward":                                             16 * mib,
		"backward torch::autograd::generated::AddmmBackward0::apply":                             10 * mib,
		"optimizer /opt/venv/lib/python3.11/site-packages/torch/optim/adam.py(185): _init_group": 16 * mib,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if got := s.Place(s.Segments[0].Blocks[3].Stack); got != "(only torch's own C++)" {
		t.Errorf("a stack of the allocator alone is placed at %q", got)
	}
}

func TestWhenMemoryWasHighest(t *testing.T) {
	peaks := find(Analyze(full(t, "snapshot.pickle.gz"), Options{}), TablePeaks)
	if peaks.Len() != 2 || peaks.TextAt("device", 0) != "device 0" || peaks.TextAt("device", 1) != "pinned host memory" {
		t.Fatalf("%d rows for %q", peaks.Len(), peaks.Column("device").Text)
	}
	if got := peaks.IntAt("peak_bytes", 0); got != 50*mib {
		t.Errorf("peak of %d bytes, want 50 MiB", got)
	}
	if got := peaks.FloatAt("time_us", 0); got != 5000 {
		t.Errorf("highest after %g µs, want 5000", got)
	}
	// 16 MiB are the forward pass's, as much the optimizer's.
	if place, part := peaks.TextAt("place", 0), peaks.FloatAt("place_share", 0); place != "/home/me/model.py(33): forward" || part != 0.32 {
		t.Errorf("most was %g of %s", part, place)
	}
	if got := peaks.IntAt("peak_bytes", 1); got != 3*mib {
		t.Errorf("pinned host memory peaked at %d bytes, want 3 MiB", got)
	}
}

func TestLiveBlocksAreGroupedByStack(t *testing.T) {
	live := find(Analyze(full(t, "snapshot.pickle"), Options{}), TableLive)
	type row struct {
		device, state, place string
		bytes, blocks        int64
	}
	var got []row
	for r := range live.Len() {
		got = append(got, row{live.TextAt("device", r), live.TextAt("state", r), live.TextAt("place", r), live.IntAt("bytes", r), live.IntAt("blocks", r)})
	}
	want := []row{
		{"device 0", "in use", "/home/me/model.py(33): forward", 16 * mib, 2},
		{"device 0", "in use", "/opt/venv/lib/python3.11/site-packages/torch/optim/adam.py(185): _init_group", 16 * mib, 1},
		{"device 0", "in use", "/home/me/train.py(12): build_model", 8 * mib, 1},
		{"pinned host memory", "in use", "/home/me/data.py(7): prefetch", 2 * mib, 1},
		{"device 0", "awaiting free", "(only torch's own C++)", 1024, 1},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestPinnedHostMemoryIsReserved(t *testing.T) {
	table := find(Analyze(full(t, "snapshot.pickle"), Options{}), TableFragmentation)
	for r := range table.Len() {
		if table.TextAt("device", r) == "pinned host memory" && table.TextAt("segments", r) == "all" {
			if table.IntAt("reserved_bytes", r) != 3*mib || table.IntAt("used_bytes", r) != 2*mib || table.IntAt("releasable_bytes", r) != mib {
				t.Errorf("reserved %d, used %d, releasable %d", table.IntAt("reserved_bytes", r), table.IntAt("used_bytes", r), table.IntAt("releasable_bytes", r))
			}
			return
		}
	}
	t.Error("no row of pinned host memory")
}

func TestLimits(t *testing.T) {
	deep := "\x80\x04" + strings.Repeat("](", 2000)
	many := "\x80\x04](" + strings.Repeat("K\x01", 2000) + "e."
	for name, c := range map[string]struct {
		text   string
		limits Limits
	}{
		"depth":   {deep, Limits{Depth: 1000}},
		"objects": {many, Limits{Objects: 1000}},
		"bytes":   {many, Limits{Bytes: 1000}},
	} {
		if _, err := Read(strings.NewReader(c.text), c.limits); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: error %v, want ErrTooLarge", name, err)
		}
	}
}

// A few bytes that refer to one list again and again must not cost more than
// their number.
func TestRepeatedReferencesAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("\x80\x04}(X\x08\x00\x00\x00segments](") // {"segments": [
	b.WriteString("}(X\x06\x00\x00\x00blocks](")           // {"blocks": [
	b.WriteString(strings.Repeat("}", 1000))
	b.WriteString("eu\x94")
	b.WriteString(strings.Repeat("h\x00", 1000))
	b.WriteString("eu.")
	if _, err := Read(strings.NewReader(b.String()), Limits{Objects: 100_000}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a million blocks from 4,000 bytes: error %v, want ErrTooLarge", err)
	}
}

func FuzzRead(f *testing.F) {
	if interpreter, err := exec.LookPath("python3"); err == nil {
		for protocol := 2; protocol <= 5; protocol++ {
			path := filepath.Join(f.TempDir(), "seed")
			if exec.Command(interpreter, "testdata/make_snapshot.py", strconv.Itoa(protocol), path).Run() == nil {
				seed, _ := os.ReadFile(path)
				f.Add(seed)
			}
		}
	}
	if interpreter, err := exec.LookPath("python3"); err == nil {
		path := filepath.Join(f.TempDir(), "seed.gz")
		if exec.Command(interpreter, "testdata/make_full_snapshot.py", path).Run() == nil {
			seed, _ := os.ReadFile(path)
			f.Add(seed)
		}
	}
	f.Add([]byte("\x80\x04}(X\x08\x00\x00\x00segments](}(X\x06\x00\x00\x00device" + "K\x01ueu."))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Read(bytes.NewReader(text), Limits{Bytes: 1 << 20, Objects: 1 << 18, Depth: 1 << 12})
		if err != nil {
			return
		}
		for _, table := range append(Analyze(s, Options{MinBytes: 100, Points: 10, Window: &Window{3, 900}}), Compare(s, s)) {
			for r := range table.Len() {
				for c := range table.Columns {
					table.Cell(r, c)
				}
			}
		}
	})
}

// manyEvents is a pickle of protocol 4 with n allocations that are freed again, each with its own list of the same 20 frames.
func manyEvents(n int) []byte {
	var b bytes.Buffer
	text := func(s string) { b.WriteString("\x8c" + string(rune(len(s))) + s) }
	number := func(v int64) { b.WriteByte(0x8a); b.WriteByte(8); binary.Write(&b, binary.LittleEndian, v) }
	b.WriteString("\x80\x04}(")
	text("segments")
	b.WriteString("]")
	text("device_traces")
	b.WriteString("](](")
	const frames = 20
	for f := range frames {
		b.WriteString("}(")
		text("filename")
		text("/home/me/net.py")
		text("name")
		text("forward")
		text("line")
		b.WriteString("K" + string(rune(f)) + "u\x94") // noted as f
	}
	b.WriteString("e") // a history of things that are no events
	for i := range n {
		if i%1000 == 0 {
			if i > 0 {
				b.WriteString("e")
			}
			if i == 0 {
				b.WriteString("]")
			}
			b.WriteString("(")
		}
		b.WriteString("}(")
		text("action")
		text([]string{"alloc", "free_completed"}[i%2])
		text("addr")
		number(int64(i/2) * 512)
		text("size")
		number(512)
		text("frames")
		b.WriteString("](")
		for f := range frames {
			b.WriteString("h" + string(rune(f)))
		}
		b.WriteString("eu")
	}
	b.WriteString("eeu.")
	return b.Bytes()
}

// TestReadingIsLinear: twice the events take twice the memory, all that is thrown away included; what is kept is an event's 32 bytes.
func TestReadingIsLinear(t *testing.T) {
	allocated := func(n int) (all uint64) {
		pickle := manyEvents(n)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, err := Read(bytes.NewReader(pickle), Limits{})
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Devices) != 2 || len(s.Devices[1].Events) != n || len(s.Stacks) != 2 || len(s.Stacks[1]) != 20 {
			t.Fatalf("%d devices, %d stacks", len(s.Devices), len(s.Stacks))
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	if one, two := allocated(10_000), allocated(20_000); float64(two) > 2.2*float64(one) {
		t.Errorf("10,000 events allocated %d bytes, 20,000 %d", one, two)
	}
	if size := unsafe.Sizeof(Event{}); size != 32 {
		t.Errorf("an event has %d bytes", size)
	}
}

// TestEventsInAnyList: a history may have an event twice, or in another order than that of the file.
func TestEventsInAnyList(t *testing.T) {
	path := filepath.Join(t.TempDir(), "odd.pickle")
	python(t, "-c", `
import pickle, sys
events = [{"action": "alloc", "addr": i, "size": 10 + i} for i in range(3)]
histories = [events, [events[2], events[0], events[0], 7, events[1]], [events[1], events[2]]]
with open(sys.argv[1], "wb") as out:
    pickle.dump({"segments": [], "device_traces": histories}, out)
`, path)
	s, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got [][]int64
	for _, d := range s.Devices {
		var sizes []int64
		for _, e := range d.Events {
			sizes = append(sizes, e.Size)
		}
		got = append(got, sizes)
	}
	if want := [][]int64{{10, 11, 12}, {12, 10, 10, 11}, {11, 12}}; !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %v, want %v", got, want)
	}
}
