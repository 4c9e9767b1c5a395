package server

import (
	"os"
	"path/filepath"
	"strings"
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

func TestAbandonedFoldersAreRemovedAndLivingOnesAreNot(t *testing.T) {
	dir, err := os.MkdirTemp("", "op")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	abandoned := filepath.Join(dir, folderPrefix+"1-x")
	stranger := filepath.Join(dir, "omni_perf_notes")
	for _, d := range []string{abandoned, stranger} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(abandoned, "s"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	living, err := newFolder([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	next, err := newFolder([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{abandoned: false, stranger: true, living.Path: true, next.Path: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", path, err == nil, want)
		}
	}
	living.Remove()
	next.Remove()
}

func TestCompany(t *testing.T) {
	start := time.Now()
	c := company{left: start}
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
