package kineto

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

// rankFile is a small trace that states its rank, or none for -1.
func rankFile(rank int) string {
	info := ""
	if rank >= 0 {
		info = fmt.Sprintf(`"distributedInfo":{"rank":%d},`, rank)
	}
	return "{" + info + `"traceEvents":[` + fmt.Sprintf(kernelEvent, rank, 10, 1) + "]}"
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		data := []byte(text)
		if strings.HasSuffix(name, ".gz") {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			z.Write(data)
			z.Close()
			data = b.Bytes()
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLoadRanks(t *testing.T) {
	for name, c := range map[string]struct {
		files    map[string]string
		only     []int
		ranks    []int
		from     []RankSource
		warnings string // part of them
	}{
		"stated": {
			map[string]string{"a.json": rankFile(4), "b.json.gz": rankFile(1), "notes.txt": "no trace"}, nil,
			[]int{1, 4}, []RankSource{RankStated, RankStated}, ""},
		"only one": {
			map[string]string{"a.json": rankFile(4), "b.json": rankFile(1)}, []int{4},
			[]int{4}, []RankSource{RankStated}, ""},
		"one more than there is": {
			map[string]string{"a.json": rankFile(4)}, []int{4, 6},
			[]int{4}, []RankSource{RankStated}, "rank 6 was asked for, but no file is of it"},
		"by name": {
			map[string]string{"trace_rank_7.json": rankFile(-1), "worker3_step.json": rankFile(-1)}, nil,
			[]int{3, 7}, []RankSource{RankFromName, RankFromName}, "rank 7 is taken from its name"},
		"a name does not overrule a statement": {
			map[string]string{"a.json": rankFile(7), "rank7.json": rankFile(-1)}, nil,
			[]int{0, 7}, []RankSource{RankAssumed, RankStated}, "it is called rank 0 here"},
		"the same twice": {
			map[string]string{"a.json": rankFile(2), "b.json": rankFile(2)}, nil,
			[]int{2}, []RankSource{RankStated}, "this file was left out"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, c.files)
			set, err := Load(context.Background(), []string{dir}, Options{Ranks: c.only})
			if err != nil {
				t.Fatal(err)
			}
			var from []RankSource
			for _, tr := range set.Traces {
				from = append(from, tr.RankFrom)
			}
			if !reflect.DeepEqual(set.Ranks(), c.ranks) || !reflect.DeepEqual(from, c.from) {
				t.Errorf("got %v %v, want %v %v", set.Ranks(), from, c.ranks, c.from)
			}
			if all := fmt.Sprint(set.Warnings); !strings.Contains(all, c.warnings) || c.warnings == "" && len(set.Warnings) > 0 {
				t.Errorf("got warnings %s, want %q", all, c.warnings)
			}
		})
	}
}

func TestLoadPaths(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.json": rankFile(0), "b.json": rankFile(1), "c.other": rankFile(2)})
	for name, c := range map[string]struct {
		paths []string
		ranks []int
		fails string
	}{
		"folder":         {[]string{dir}, []int{0, 1}, ""},
		"glob":           {[]string{filepath.Join(dir, "*.other"), filepath.Join(dir, "a*")}, []int{0, 2}, ""},
		"file and again": {[]string{filepath.Join(dir, "a.json"), filepath.Join(dir, ".", "a.json")}, []int{0}, ""},
		"missing":        {[]string{filepath.Join(dir, "x.json")}, nil, "no such file or folder"},
		"empty folder":   {[]string{t.TempDir()}, nil, "no trace inside"},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := Load(context.Background(), c.paths, Options{})
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("got %v, want %q", err, c.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(set.Ranks(), c.ranks) {
				t.Errorf("got ranks %v, want %v", set.Ranks(), c.ranks)
			}
		})
	}
}

func TestLoadOfRanksThatNoFileIsOf(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.json": rankFile(4), "b.json": rankFile(1)})
	for want, paths := range map[string][]string{
		"none of the traces is of rank 0 or 3; they are of ranks 1 and 4": {dir},
		"none of the traces is of rank 0 or 3; they are of rank 4":        {filepath.Join(dir, "a.json")},
	} {
		if _, err := Load(context.Background(), paths, Options{Ranks: []int{0, 3}}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestLoadDamagedGzip(t *testing.T) {
	var events []string
	for i := range 20000 {
		events = append(events, fmt.Sprintf(kernelEvent, i*7919, 10*i, i))
	}
	whole := `{"distributedInfo":{"rank":0},"traceEvents":[` + strings.Join(events, ",\n") + "]}"
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json.gz")
	for name, c := range map[string]struct {
		damage  func(data []byte)
		warning string
	}{
		"zeroes":   {func(d []byte) { clear(d[len(d)/2:]) }, "the gzip data is"},
		"noise":    {func(d []byte) { copy(d[len(d)/2:], bytes.Repeat([]byte{0xff}, 64)) }, "gzip checksum is wrong"},
		"checksum": {func(d []byte) { d[len(d)-8] ^= 1 }, "gzip checksum is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, dir, map[string]string{"a.json.gz": whole})
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			c.damage(data)
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			set, err := Load(context.Background(), []string{path}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if n := set.Traces[0].Device.Len(); n < 5000 {
				t.Errorf("got %d events, want the readable half", n)
			}
			if all := fmt.Sprint(set.Warnings); !strings.Contains(all, c.warning) {
				t.Errorf("got warnings %s, want %q", all, c.warning)
			}
		})
	}
}

func TestLoadProgressAndCancel(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.json": rankFile(0), "b.json.gz": rankFile(1)})
	var last Progress
	if _, err := Load(context.Background(), []string{dir}, Options{Progress: func(p Progress) { last = p }}); err != nil {
		t.Fatal(err)
	}
	if !last.Done || last.FilesDone != 2 || last.Files != 2 || last.Events != 2 || last.Bytes != last.AllBytes || last.Bytes == 0 {
		t.Errorf("got %+v", last)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Load(ctx, []string{dir}, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

// A FIFO among the files of a folder must not hold the analysis up, whether or not
// somebody writes to it.
func TestLoadOpensRegularFilesOnly(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.json": rankFile(6)})
	path := filepath.Join(dir, "pipe.json")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip("no named pipes here:", err)
	}
	set, err := Load(context.Background(), []string{dir}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := set.Ranks(); !reflect.DeepEqual(got, []int{6}) || len(set.Warnings) != 1 || !strings.Contains(set.Warnings[0].What, "not a regular file") {
		t.Errorf("got ranks %v, warnings %v; want [6] and one about the pipe", got, set.Warnings)
	}
}

// TestOneFileWithSeveralWarnings: of one file the first reason is given, without a count of files.
func TestOneFileWithSeveralWarnings(t *testing.T) {
	set := &Set{Warnings: []Warning{{File: "a.json", Byte: -1, What: "damaged"}, {File: "a.json", Byte: -1, What: "cut short"}}}
	for want, files := range map[string][]string{
		"no trace could be read: a.json: damaged":                         {"a.json"},
		"no trace could be read from 2 files, the first: a.json: damaged": {"a.json", "b.json"},
	} {
		if err := noTraces(files, set, nil); err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
