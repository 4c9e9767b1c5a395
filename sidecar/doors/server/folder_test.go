package server

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestFolderFallsBackAndSaysWhyNot(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	long := filepath.Join(dir, strings.Repeat("x", 100))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	short, err := os.MkdirTemp("", "op")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })

	f, err := newFolder([]string{"relative", filepath.Join(dir, "missing"), file, long, short})
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(f.Path) != short {
		t.Errorf("made %s, want one in %s", f.Path, short)
	}
	if err := f.Remove(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(long); len(left) > 0 {
		t.Errorf("the one with too long a path was left: %v", left)
	}
	_, err = newFolder([]string{"relative", filepath.Join(dir, "missing"), long})
	if err == nil {
		t.Fatal("a folder was made nowhere")
	}
	for _, want := range []string{"no absolute path", "no such file", "too long", "XDG_RUNTIME_DIR"} {
		if !strings.Contains(Sentence(err), want) {
			t.Errorf("%q does not say %q", Sentence(err), want)
		}
	}
}

func TestOurs(t *testing.T) {
	if !ours(t.TempDir()) || ours("") || ours("/nonexistent") {
		t.Error("a folder of our own is not known from one that is not")
	}
	if os.Geteuid() != 0 {
		if ours("/") {
			t.Error("the root folder is taken for ours")
		}
		return
	}
	foreign := t.TempDir()
	if err := os.Chown(foreign, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if ours(foreign) {
		t.Error("another user's folder is taken for ours")
	}
}

// folders makes a parent whose path is short enough for sockets in it.
func folders(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "op")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// leave makes a folder as a killed sidecar leaves it; prepare changes it.
func leave(t *testing.T, parent, name string, prepare ...func(path string) error) string {
	t.Helper()
	path := filepath.Join(parent, name)
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, p := range prepare {
		if err := p(path); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func withSocket(path string) error {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(path, "s"), Net: "unix"})
	if err == nil {
		l.SetUnlinkOnClose(false)
		err = l.Close()
	}
	return err
}

func withFile(name string) func(string) error {
	return func(path string) error { return os.WriteFile(filepath.Join(path, name), []byte("x"), 0o600) }
}

func aged(path string) error {
	long := time.Now().Add(-2 * newFor)
	return os.Chtimes(path, long, long)
}

func TestSweepingRemovesExactlyWhatKilledSidecarsLeft(t *testing.T) {
	dir := folders(t)
	living, err := newFolder([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	stays := map[string]bool{
		// What sidecars leave.
		leave(t, dir, "omni_perf-1-1", withSocket, withFile("log")):           false,
		leave(t, dir, "omni_perf-1-2", withFile("log")):                       false,
		leave(t, dir, "omni_perf-1-7", withSocket, withFile("omni_perf.zip")): false,
		leave(t, dir, "omni_perf-1-3"):                                        false,
		leave(t, dir, "omni_perf-1-4.new", aged):                              false,
		// What is in use.
		living.Path:                        true,
		leave(t, dir, "omni_perf-1-5.new"): true, // just being made
		leave(t, dir, "omni_perf-fake-8a_x", withFile("s")):  true,
		leave(t, dir, "omni_perf_analyze_k3", withFile("s")): true,
		// What is the user's.
		leave(t, dir, "omni_perf-results", withFile("train.svg")):                              true,
		leave(t, dir, "omni_perf-2024-11", withFile("train.svg")):                              true,
		leave(t, dir, "omni_perf-2024-12", withFile("log"), withFile("notes")):                 true,
		leave(t, dir, "omni_perf-2025-1", withFile("s")):                                       true, // no socket
		leave(t, dir, "omni_perf-2025-2", func(p string) error { return os.Chmod(p, 0o755) }):  true,
		leave(t, dir, "omni_perf-2025-3", func(p string) error { return os.Mkdir(p+"/s", 0) }): true,
		leave(t, dir, "omni_perf-2025-4-old"):                                                  true,
		leave(t, dir, "omni_perf"):                                                             true,
		leave(t, dir, "my-omni_perf-1-2"):                                                      true,
	}
	precious := leave(t, dir, "precious", withFile("log"))
	link := filepath.Join(dir, "omni_perf-1-6")
	if err := os.Symlink(precious, link); err != nil {
		t.Fatal(err)
	}
	stays[precious], stays[link], stays[filepath.Join(precious, "log")] = true, true, true

	next, err := newFolder([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	next.Sweep()
	for path, want := range stays {
		if _, err := os.Lstat(path); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", filepath.Base(path), err == nil, want)
		}
	}
	if names, _ := os.ReadDir(filepath.Join(dir, "omni_perf-2024-12")); len(names) != 2 {
		t.Errorf("of the user's two files %v are left", names)
	}
	living.Remove()
	next.Remove()
}

func TestTryingAFolderRemovesNothing(t *testing.T) {
	dir := folders(t)
	t.Setenv("XDG_RUNTIME_DIR", dir)
	left := leave(t, dir, "omni_perf-1-1")
	if parent, err := TryFolder(); err != nil || parent != dir {
		t.Fatalf("tried %s, %v; want %s", parent, err, dir)
	}
	if names, _ := os.ReadDir(dir); len(names) != 1 || names[0].Name() != filepath.Base(left) {
		t.Errorf("%v is there, want what was there before", names)
	}
}

func TestAFolderGoesButNotWhatAUserPutThere(t *testing.T) {
	dir := folders(t)
	f, err := newFolder([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, put := range []func(string) error{withSocket, withFile("log"), withFile("thesis.tex")} {
		if err := put(f.Path); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Remove(); err == nil {
		t.Error("nothing is said of a folder that stays")
	}
	if names, _ := os.ReadDir(f.Path); len(names) != 1 || names[0].Name() != "thesis.tex" {
		t.Errorf("%v is left, want thesis.tex", names)
	}
}

func TestSidecarsStartedAtOnceDoNotSweepEachOther(t *testing.T) {
	dir := folders(t)
	var work sync.WaitGroup
	made := make([]*Folder, 24)
	for i := range made {
		work.Go(func() {
			f, err := newFolder([]string{dir})
			if err != nil {
				t.Error(err)
				return
			}
			f.Sweep()
			made[i] = f
		})
	}
	work.Wait()
	for _, f := range made {
		if f == nil {
			continue
		}
		if _, err := os.Stat(f.Path); err != nil {
			t.Error(err)
		}
		f.Remove()
	}
}

func TestCompany(t *testing.T) {
	start := time.Now()
	c := callers{left: start}
	for _, step := range []struct {
		after  time.Duration
		open   int64
		socket bool
		want   string
	}{
		{0, 0, true, ""}, // the launcher has not connected yet
		{patience / 2, 1, true, ""},
		{2 * patience, 1, false, ""}, // connected, whatever became of the file
		{2*patience + 1, 0, true, ""},
		{2*patience + 2, 0, false, "the socket was deleted and nobody is connected"},
		{3 * patience, 0, true, ""},
		{3*patience + 1, 0, true, "nobody was connected for 1m0s"},
	} {
		if got := c.gone(step.open, step.socket, start.Add(step.after)); got != step.want {
			t.Errorf("after %v with %d peers: %q, want %q", step.after, step.open, got, step.want)
		}
	}
}

func FuzzParseStart(f *testing.F) {
	f.Add([]byte(`{"token": "0123456789abcdef0123456789abcdef", "kernel_pid": 7, "kernel_start": 8}`))
	f.Add([]byte(`{"token": 1}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := parseStart(line)
		if err == nil && (len(m.Token) < 32 || m.KernelPID <= 0) {
			t.Errorf("%q was taken as %+v", line, m)
		}
	})
}
