package pystack

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// What a thread waits for by the means of the standard library is said for as long as the program says itself; a sleep is for nothing.
func TestWhatTheStandardLibraryWaitsFor(t *testing.T) {
	source, err := os.ReadFile("testdata/waits.py")
	if err != nil {
		t.Fatal(err)
	}
	truth.EachInterpreter(t, func(t *testing.T, python truth.Interpreter) {
		right := make(map[string]bool) // in this attempt or an earlier one
		retry.Again(t, func(t *retry.Attempt) {
			want := make(map[string]float64)
			rec := recordAnswer(t, exec.Command(python.Path, "-c", string(source)), &want)
			got := mainWaited(rec, func(on timeline.Object) string {
				name := on.Name
				if on.IsOfThread() && on.Holder >= 0 {
					name = rec.Threads[on.Holder].Name
				}
				return fmt.Sprintf("%s %s %s", on.Call, on.Kind, name)
			})
			for name, seconds := range want {
				if name == "none" {
					seconds = 0
				}
				right[name] = right[name] || math.Abs(got[name]-seconds) <= 0.04
				if !right[name] || got[name] > seconds+0.04 {
					t.Errorf("%s: %.3f s, it says %.3f", name, got[name], seconds)
				}
				delete(got, name)
			}
			for name, seconds := range got {
				if seconds > 0.1 { // a thread is not known before it was listed
					t.Errorf("%s was waited for for %.3f s", name, seconds)
				}
			}
		})
	})
}

// Which process has the lock of a file, or of a database of SQLite, is said once a wait for it lasts.
func TestWhichProcessHasALock(t *testing.T) {
	python := truth.Any(t)
	if exec.Command(python.Path, "-c", "import os, sqlite3; os.stat('testdata/locked.py')").Run() != nil {
		t.Skip("it has no sqlite3, or is in a container that does not see the program")
	}
	right := make(map[string]bool)
	retry.Again(t, func(t *retry.Attempt) {
		want := make(map[string][2]float64)
		rec := recordAnswer(t, exec.Command(python.Path, "testdata/locked.py", t.TempDir()), &want)
		got := mainWaited(rec, func(on timeline.Object) string {
			if on.Owner == 0 {
				return ""
			}
			return fmt.Sprintf("%s %s %d", on.Call, filepath.Base(on.Name), on.Owner)
		})
		for name, had := range want {
			key := fmt.Sprintf("%s %d", name, int(had[1]))
			right[name] = right[name] || got[key] > had[0]-0.35 // it is looked up after 50 ms, in tens of milliseconds
			if !right[name] || got[key] > had[0]+0.03 {
				t.Errorf("%s: %.3f s, it says %.3f", key, got[key], had[0])
			}
			delete(got, key)
		}
		for name, seconds := range got {
			t.Errorf("%s was waited for for %.3f s", name, seconds)
		}
	})
}

// mainWaited is for how many seconds the main thread waited for what has a name; what has none is left out.
func mainWaited(rec *timeline.Recording, name func(timeline.Object) string) map[string]float64 {
	seconds := make(map[string]float64)
	for _, thread := range rec.Threads {
		for _, s := range thread.Spans {
			if s.On == 0 || !thread.Main {
				continue
			}
			if name := name(rec.Objects[s.On]); name != "" {
				seconds[name] += (s.End - s.Start).Seconds()
			}
		}
	}
	return seconds
}

func TestLocksOfFilesAreRead(t *testing.T) {
	locks := parseLocks([]byte(`1: POSIX  ADVISORY  WRITE 4711 fe:00:77 1073741824 1073742335
1: -> POSIX  ADVISORY  WRITE 99 fe:00:77 1073741825 1073741825
2: FLOCK  ADVISORY  WRITE 4712 00:2a:78 0 EOF
3: OFDLCK ADVISORY  READ  -1 fe:00:79 0 EOF
4: LEASE  ACTIVE    READ  4713 fe:00:80 0 EOF
5: POSIX  ADVISORY  READ  4714 fe:00:77 EOF
`))
	want := []fileLock{
		{write: true, owner: 4711, file: fileNumber{"fe:00", 77}, first: 1073741824, end: 1073742335},
		{flock: true, write: true, owner: 4712, file: fileNumber{"00:2a", 78}, end: -1},
		{file: fileNumber{"fe:00", 79}, end: -1},
	}
	if fmt.Sprint(locks) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", locks, want)
	}
}

// A database is one of which others have the bytes locked that only SQLite locks; of several that could be meant none is named.
func TestWhichDatabaseIsLocked(t *testing.T) {
	file := func(n uint64) fileNumber { return fileNumber{"fe:00", n} }
	files := []openFile{{3, file(1)}, {4, file(2)}, {5, file(3)}}
	paths := map[int]string{3: "/u/a.db", 4: "/u/b.db-shm", 5: "/u/notes.txt"}
	shared := func(owner int, n uint64) fileLock {
		return fileLock{owner: owner, file: file(n), first: lockBytes + 2, end: lockBytes + 511}
	}
	reserved := func(owner int, n uint64) fileLock {
		return fileLock{write: true, owner: owner, file: file(n), first: lockBytes + 1, end: lockBytes + 1}
	}
	writesLog := fileLock{write: true, owner: 8, file: file(2), first: walWriteLock, end: walWriteLock}
	for _, test := range []struct {
		name  string
		locks []fileLock
		want  string
	}{
		{"nobody's", nil, ""},
		{"a writer's", []fileLock{shared(7, 1), shared(9, 1), reserved(8, 1)}, "/u/a.db 8"},
		{"readers'", []fileLock{shared(8, 1), shared(9, 1), reserved(7, 1)}, "/u/a.db 0"},
		{"of its own", []fileLock{reserved(7, 1)}, "/u/a.db 7"},
		{"of the log", []fileLock{writesLog, shared(8, 2)}, "/u/b.db 8"},
		{"of two", []fileLock{writesLog, reserved(8, 1)}, " 0"},
		{"of bytes of a text", []fileLock{{write: true, owner: 8, file: file(3), first: walWriteLock, end: walWriteLock}}, ""},
		{"of a whole file", []fileLock{{write: true, owner: 8, file: file(1), end: -1}}, ""},
		{"of a file that is not open", []fileLock{reserved(8, 4)}, ""},
	} {
		got := ""
		if what, ok := lockedDatabase(test.locks, files, 7, func(fd int) string { return paths[fd] }); ok {
			got = fmt.Sprintf("%s %d", what.Name, what.Owner)
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
