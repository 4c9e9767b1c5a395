package kineto

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// recording writes a trace file of a process that recorded from start to end µs.
type recording struct {
	file       string
	host       string // stated in the file
	pid        int
	start, end int
	rank       int // -1: not stated
}

func (r recording) text() string {
	info := ""
	if r.rank >= 0 {
		info = fmt.Sprintf(`"distributedInfo":{"rank":%d},`, r.rank)
	}
	if r.host != "" {
		info += fmt.Sprintf(`"host_name":%q,`, r.host)
	}
	op := func(ts int) string {
		return fmt.Sprintf(`{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":%d,"tid":1,"ts":%d,"dur":1}`, r.pid, ts)
	}
	return "{" + info + `"traceEvents":[` + op(r.end-1) + "," + op(r.start) + "]}"
}

// epoch is a time of today in a trace, in microseconds.
const epoch = 1_790_000_000_000_000

// TestRecordingsOfProcesses: which files are one process's, and which processes
// are ranks of one run.
func TestRecordingsOfProcesses(t *testing.T) {
	for name, c := range map[string]struct {
		files    []recording
		ranks    string   // rank: files by time
		warnings []string // the files that one is about, with a part of it
	}{
		"one file": {
			[]recording{{"a.json", "", 9, 0, 5, -1}},
			"0: a", nil},
		"cycles of one process": {
			[]recording{{"b.json", "", 9, 0, 5, -1}, {"a.json", "", 9, 10, 15, -1}, {"c.json", "", 9, 15, 20, -1}},
			"0: b a c", nil},
		"cycles of two ranks": {
			[]recording{{"a.json", "", 9, 0, 5, 0}, {"b.json", "", 8, 1, 6, 1}, {"c.json", "", 9, 10, 15, 0}, {"d.json", "", 8, 11, 16, 1}},
			"0: a c; 1: b d", nil},
		"ranks that state none": {
			[]recording{{"a.json", "", 9, 0, 5, -1}, {"b.json", "", 8, 1, 6, -1}, {"c.json", "", 9, 10, 15, -1}},
			"0: a c; 1: b", []string{"a: it is called rank 0 here; so it is of 1 other file of its", "b: it is called rank 1 here"}},
		"another host with the same process number": {
			[]recording{{"a.json", "n1", 9, 0, 5, -1}, {"b.json", "n2", 9, 10, 15, -1}},
			"0: b", []string{"a: the file is of another run"}},
		"two hosts at the same time": {
			[]recording{{"a.json", "n1", 9, 0, 5, -1}, {"b.json", "n2", 9, 1, 6, -1}},
			"0: a; 1: b", []string{"a: it is called rank 0", "b: it is called rank 1"}},
		"containers with the same process number": {
			[]recording{{"a.json", "", 9, 0, 5, -1}, {"b.json", "", 9, 1, 6, -1}},
			"0: a; 1: b", []string{"a: it is called rank 0", "b: it is called rank 1"}},
		"the host is in the name": {
			[]recording{{"n1_9.1700.pt.trace.json", "", 9, 0, 5, -1}, {"n2_9.1701.pt.trace.json", "", 9, 3, 6, -1}, {"n1_9.1702.pt.trace.json", "", 9, 10, 15, -1}},
			"0: n1_9.1700.pt.trace n1_9.1702.pt.trace; 1: n2_9.1701.pt.trace", []string{"n1_9.1700.pt.trace: it is called rank 0 here; so it", "n2_9.1701.pt.trace: it is called rank 1"}},
		"a host that is called like a rank": {
			[]recording{{"gpu-7_9.1700.pt.trace.json", "", 9, 0, 5, -1}},
			"0: gpu-7_9.1700.pt.trace", nil},
		"a run that was over": {
			[]recording{{"a.json", "", 9, 0, 5, -1}, {"b.json", "", 8, 10, 15, -1}, {"c.json", "", 7, 12, 20, -1}},
			"0: b; 1: c", []string{"a: the file is of another run", "b: it is called rank 0", "c: it is called rank 1"}},
		"runs of stated ranks": {
			[]recording{{"a.json", "", 9, 0, 5, 2}, {"b.json", "", 8, 10, 15, 2}, {"c.json", "", 8, 20, 25, 2}},
			"2: b c", []string{"a: the file states rank 2, as b.json does"}},
		"a copy": {
			[]recording{{"a.json", "", 9, 0, 5, 2}, {"b.json", "", 9, 0, 5, 2}},
			"2: a", []string{"b: the file is the same recording as a.json"}},
		"stated, named, neither": {
			[]recording{{"a.json", "", 9, 0, 5, 1}, {"rank2.json", "", 8, 0, 5, -1}, {"rank1.json", "", 7, 0, 5, -1}, {"b.json", "", 6, 0, 5, -1}},
			"0: rank1; 1: a; 2: rank2; 3: b", []string{"b: it is called rank 3", "rank1: it is called rank 0", "rank2: rank 2 is taken from its name"}},
		"cycles of named ranks": {
			[]recording{{"rank0_step1.json", "", 9, 0, 5, -1}, {"rank0_step2.json", "", 9, 10, 15, -1}, {"rank1_step1.json", "", 8, 0, 5, -1}},
			"0: rank0_step1 rank0_step2; 1: rank1_step1", []string{"rank0_step1: rank 0 is taken from its name; so it is of 1 other file of", "rank1_step1: rank 1 is taken"}},
		"a cycle before torch.distributed was initialised": {
			[]recording{{"a.json", "n1", 9, 0, 5, -1}, {"b.json", "n1", 9, 10, 15, 0}},
			"0: a b", nil},
		"cycles of two ranks before they knew it": {
			[]recording{{"a.json", "", 9, 0, 5, -1}, {"b.json", "", 8, 1, 6, -1}, {"c.json", "", 9, 10, 15, 1}, {"d.json", "", 8, 11, 16, 0}},
			"0: b d; 1: a c", nil},
		"a cycle that states what another's name says": {
			[]recording{{"rank3_step1.json", "", 9, 0, 5, -1}, {"b.json", "", 9, 10, 15, 3}},
			"3: rank3_step1 b", nil},
		"a name that says otherwise": {
			[]recording{{"rank3.json", "", 9, 4, 9, -1}, {"b.json", "", 9, 10, 15, 0}, {"c.json", "", 8, 0, 15, 1}},
			"0: b; 1: c; 3: rank3", []string{"rank3: rank 3 is taken from its name"}},
		"a cycle of a name": {
			[]recording{{"rank0_step1.json", "", 9, 0, 5, -1}, {"more.json", "", 9, 10, 15, -1}},
			"0: rank0_step1 more", nil},
		"a cycle without a rank at the time of one that has it": {
			[]recording{{"a.json", "n1", 9, 0, 12, -1}, {"b.json", "n1", 9, 10, 15, 0}},
			"0: b; 1: a", []string{"a: it is called rank 1"}},
		"an earlier run that stated no rank": {
			[]recording{{"a.json", "", 9, 0, 5, -1}, {"b.json", "", 8, 10, 15, 0}},
			"0: b", []string{"a: the file is of another run"}},
		"both cycles of an earlier run": {
			[]recording{{"a.json", "", 9, 0, 5, -1}, {"b.json", "", 9, 10, 15, 0}, {"c.json", "", 8, 20, 25, -1}, {"d.json", "", 8, 30, 35, 0}},
			"0: c d", []string{"a: the file is of another run", "b: the file states rank 0, as"}},
		"times since the machine was started, of another process": {
			[]recording{{"a.json", "", 9, 0, 5, -1}, {"b.json", "", 8, epoch, epoch + 5, -1}},
			"0: b", []string{"a: b.json are of different clocks: they cannot be placed on one time axis"}},
		"times since the machine was started, of the same process": {
			[]recording{{"a.json", "", 9, 0, 5, -1}, {"b.json", "", 9, epoch, epoch + 5, -1}},
			"0: b", []string{"a: b.json are of different clocks"}},
		"times since the machine was started, beside a rank": {
			[]recording{{"a.json", "", 9, 0, 5, -1}, {"b.json", "", 8, epoch, epoch + 5, 0}},
			"0: b", []string{"a: b.json are of different clocks"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, r := range c.files {
				write(t, dir, map[string]string{r.file: r.text()})
			}
			set, err := Load(context.Background(), []string{dir}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			stem := func(path string) string { return strings.TrimSuffix(filepath.Base(path), ".json") }
			var ranks []string
			for _, tr := range set.Traces {
				if label := fmt.Sprintf("%d:", tr.Rank); len(ranks) == 0 || !strings.HasPrefix(ranks[len(ranks)-1], label) {
					ranks = append(ranks, label)
				}
				ranks[len(ranks)-1] += " " + stem(tr.File)
			}
			if got := strings.Join(ranks, "; "); got != c.ranks {
				t.Errorf("got %s, want %s", got, c.ranks)
			}
			if len(set.Warnings) != len(c.warnings) {
				t.Fatalf("got warnings %v, want %q", set.Warnings, c.warnings)
			}
			for i, w := range set.Warnings {
				said := stem(w.File) + ": " + strings.ReplaceAll(w.What+"; "+w.Lost, dir+"/", "")
				file, part, _ := strings.Cut(c.warnings[i], ": ")
				if !strings.HasPrefix(said, file+": ") || !strings.Contains(said, part) {
					t.Errorf("got warning %q, want %q", said, c.warnings[i])
				}
			}
		})
	}
}

// TestFilesAreRanksForHTA: it keeps one file of a rank, and takes every other for
// one.
func TestFilesAreRanksForHTA(t *testing.T) {
	dir := t.TempDir()
	for i, file := range []string{"a.json", "b.json"} {
		write(t, dir, map[string]string{file: recording{file, "", 9, 10 * i, 10*i + 5, -1}.text()})
	}
	set, err := Load(context.Background(), []string{dir}, Options{Frame: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := set.Ranks(); !reflect.DeepEqual(got, []int{0, 1}) || set.Traces[0].Frame == nil {
		t.Errorf("got ranks %v", got)
	}
}

// TestRanksAskedForAreAllTheirFiles, and a damaged file is left out of them.
func TestRanksAskedForAreAllTheirFiles(t *testing.T) {
	dir := t.TempDir()
	for _, r := range []recording{{"a.json", "", 9, 0, 5, 0}, {"b.json", "", 8, 1, 6, 1}, {"c.json", "", 8, 10, 15, 1}} {
		write(t, dir, map[string]string{r.file: r.text()})
	}
	write(t, dir, map[string]string{"d.json": ""})
	seen := map[string]bool{}
	set, err := LoadEach(context.Background(), []string{dir}, Options{Ranks: []int{1}, Parallel: 1}, func(t *Trace) { seen[filepath.Base(t.File)] = true })
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Traces) != 2 || len(set.Ranks()) != 1 || fmt.Sprint(seen) != "map[b.json:true c.json:true]" {
		t.Errorf("got ranks %v of %d files, seen %v", set.Ranks(), len(set.Traces), seen)
	}
	if all := fmt.Sprint(set.Warnings); !strings.Contains(all, "the file is empty") {
		t.Errorf("got warnings %s", all)
	}
}
