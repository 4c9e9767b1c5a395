package host

import (
	"os"
	"path/filepath"
	"testing"
)

func folderOf(t *testing.T, folder string, content map[string]string) string {
	t.Helper()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range content {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestTheLastLookAtMemory(t *testing.T) {
	root := t.TempDir()
	proc := folderOf(t, filepath.Join(root, "proc"), map[string]string{"vmstat": "nr_free 1\noom_kill 7\n"})
	inner := folderOf(t, filepath.Join(root, "inner"), map[string]string{"memory.max": "max\n", "memory.current": "5\n", "memory.events": "max 1\noom 1\noom_kill 2\noom_group_kill 0\n"})
	outer := folderOf(t, filepath.Join(root, "outer"), map[string]string{"memory.max": "1000\n", "memory.current": "900\n", "memory.events": "oom_kill 3\n"})
	old := folderOf(t, filepath.Join(root, "old"), map[string]string{"memory.limit_in_bytes": "500\n", "memory.usage_in_bytes": "400\n", "memory.oom_control": "under_oom 0\noom_kill 4\n"})
	for what, c := range map[string]struct {
		folders                []string
		group, limit, ofTheirs int64
	}{
		"a limit of an outer group": {[]string{inner, outer}, 900, 1000, 2},
		"cgroups version 1":         {[]string{old}, 400, 500, 4},
		"a group that is gone":      {[]string{filepath.Join(root, "gone")}, 0, 0, 0},
		"no group":                  {nil, 0, 0, 0},
	} {
		got := (&MemoryWatch{folders: c.folders, proc: proc}).Now()
		if got.Group != c.group || got.GroupLimit != c.limit || got.GroupKills != c.ofTheirs || got.Kills != 7 {
			t.Errorf("%s: %+v", what, got)
		}
		if got.Machine <= 0 || got.Available <= 0 || got.Available > got.Machine {
			t.Errorf("%s: the machine has %d of %d", what, got.Available, got.Machine)
		}
	}
}
