package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/measure/targetfs"
)

func TestLinesAreReadAsTheTargetSeesThem(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	path := filepath.Join(dir, "m.py")
	text := "first\nsecond \xff\n" + strings.Repeat("x", 2*maxSourceLine) + "\nlast"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, "pipe.py")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	l := NewLines(targetfs.New(os.Getpid()))
	for _, c := range []struct {
		file string
		line int
		want string
	}{
		{path, 1, "first"}, {"m.py", 2, "second \ufffd"}, {path, 3, strings.Repeat("x", maxSourceLine)}, {path, 4, "last"},
		{path, 0, ""}, {path, 5, ""}, {path, -1, ""}, {"", 1, ""}, {"<string>", 1, ""}, {"a\x00b", 1, ""},
		{dir, 1, ""}, {pipe, 1, ""}, {"/nonexistent.py", 1, ""}, {"/dev/zero", 1, ""},
	} {
		if got := l.Line(c.file, c.line); got != c.want {
			t.Errorf("%q line %d is %.20q, want %.20q", c.file, c.line, got, c.want)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got := l.Line(path, 1); got != "first" {
		t.Errorf("a deleted file that was read before: %q", got)
	}
}

func TestLinesAreBounded(t *testing.T) {
	dir := t.TempDir()
	text := []byte(strings.Repeat(strings.Repeat("y", 99)+"\n", maxSourceFile/100))
	l := NewLines(targetfs.New(os.Getpid()))
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := len(l.Line(path, 1)); got != 99 {
			t.Fatalf("%s: a line of %d bytes, want 99", name, got)
		}
		if l.kept > maxKept+maxSourceFile*2 {
			t.Fatalf("%d bytes are kept", l.kept)
		}
	}
}
