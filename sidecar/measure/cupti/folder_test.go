package cupti

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A folder in which nothing was made since it was listed is not listed again; a ring made meanwhile is found.
func TestFolderIsListedWhereItChanged(t *testing.T) {
	path := t.TempDir()
	if err := os.WriteFile(filepath.Join(path, "log"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, long, long); err != nil {
		t.Fatal(err)
	}
	f := folder{path: path}
	processes := make(map[int]*process)
	f.look(processes)
	first := f.listed
	f.look(processes)
	if first.IsZero() || f.listed != first {
		t.Errorf("listed at %v, and again at %v", first, f.listed)
	}
	if err := os.WriteFile(filepath.Join(path, "exact-7"), make([]byte, 8), 0o600); err != nil {
		t.Fatal(err)
	}
	f.look(processes)
	if f.listed == first || !f.pending && processes[7] == nil {
		t.Error("a ring that was made is not looked at")
	}
	second := f.listed
	f.look(processes)
	if f.listed == second {
		t.Error("just after a change, or with a ring that is not finished, the folder is listed again")
	}
}
