package procfs

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const statLine = "4711 (py (3) x) S 12 4711 4710 0 -1 4194304 901 33 7 2 150 50 30 20 20 0 5 0 987654 10000 200 18446744073709551615\n"

func TestParseStat(t *testing.T) {
	got, err := ParseStat([]byte(statLine))
	if err != nil {
		t.Fatal(err)
	}
	want := Stat{
		Comm: "py (3) x", State: 'S', Parent: 12, Session: 4710, Minor: 901, ReapedMinor: 33, Major: 7,
		Own: 2 * time.Second, Reaped: 500 * time.Millisecond, Threads: 5, Start: 987654, RSS: 200 * uint64(os.Getpagesize()),
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	ending := strings.Replace(statLine, " 4194304 ", " 4194308 ", 1)
	if got, err := ParseStat([]byte(ending)); err != nil || !got.Exiting {
		t.Errorf("%q, of a process that is ending, was read as %+v, %v", ending, got, err)
	}
	for _, bad := range []string{"", "1 (a", "1 (a) S", "1 (a) S 1 2 3 x x x x x x x x x x x x x x x x x x", ") ("} {
		if got, err := ParseStat([]byte(bad)); err == nil {
			t.Errorf("%q was read as %+v", bad, got)
		}
	}
}

func TestOfThisProcess(t *testing.T) {
	fs := New("/proc")
	pid := os.Getpid()
	st, err := fs.Stat(pid)
	if err != nil || st.Parent != os.Getppid() || st.Start == 0 {
		t.Errorf("stat %+v, %v", st, err)
	}
	tasks, err := fs.Tasks(pid)
	if err != nil || len(tasks) < 2 {
		t.Fatalf("tasks %v, %v; Go has several", tasks, err)
	}
	for _, tid := range tasks {
		if group, err := fs.Group(tid); err != nil || group != pid {
			t.Errorf("thread %d is of process %d (%v), want %d", tid, group, err, pid)
		}
	}
	if len(fs.Arguments(pid)) != len(os.Args) || len(fs.Environment(pid)) == 0 || fs.Executable(pid) == "" {
		t.Error("its command line, environment or executable cannot be read")
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte(statLine))
	f.Add([]byte("1 ((()) R 0 0 0 0 0 0 0 0 0 0 -9223372036854775808 9223372036854775807 0 0 0 0 0 0 0 0"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ParseStat(text)
		if err == nil && (s.Own < 0 || s.Reaped < 0) {
			t.Errorf("%q: negative CPU time %+v", text, s)
		}
	})
}

func TestStartTellsTheLivingFromTheDead(t *testing.T) {
	first, alive := Start(os.Getpid())
	again, _ := Start(os.Getpid())
	if !alive || first == 0 || first != again {
		t.Errorf("this process started at %d and %d, alive: %v", first, again, alive)
	}
	cmd := exec.Command("/bin/sh", "-c", "exit 0")
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, alive := Start(cmd.Process.Pid); !alive { // a zombie until Wait
			break
		}
		if time.Now().After(end) {
			t.Fatal("a zombie is reported as alive")
		}
	}
	_ = cmd.Wait()
	if _, alive := Start(cmd.Process.Pid); alive {
		t.Error("a process that is gone is reported as alive")
	}
}

func TestNamespaceIDs(t *testing.T) {
	got := NamespaceIDs([]byte("Name:\tpython\nPid:\t4711\nNSpid:\t4711\t12\nNSpgid:\t1\n"))
	if len(got) != 2 || got[0] != 4711 || got[1] != 12 {
		t.Errorf("got %v, want [4711 12]", got)
	}
	if got := NamespaceIDs([]byte("no such line")); got != nil {
		t.Errorf("got %v, want nothing", got)
	}
}

func FuzzNamespaceIDs(f *testing.F) {
	f.Add([]byte("Name:\tx\nNSpid:\t4711\t12\n"))
	f.Add([]byte("\nNSpid:"))
	f.Fuzz(func(t *testing.T, status []byte) {
		for _, id := range NamespaceIDs(status) {
			if id <= 0 {
				t.Errorf("process number %d", id)
			}
		}
	})
}
