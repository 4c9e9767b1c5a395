package synth

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/omni-perf/omni-perf/sidecar/show/output"
)

// SnapshotName is the memory snapshot beside the traces.
const SnapshotName = "memory_snapshot.pickle"

// Folder says what WriteFolder writes.
type Folder struct {
	Config
	Path    string
	Cycles  int    // of steps, each in files of its own; 0 = 1
	Plain   bool   // not compressed
	Answers string // a file for the answers as JSON; empty: none
}

// WriteFolder writes the traces of all cycles and a memory snapshot. It returns the
// last cycle's answers.
func WriteFolder(f Folder) (found *Answers, err error) {
	for f.Cycle = range max(1, f.Cycles) {
		if found, err = WriteDir(f.Config, f.Path, !f.Plain); err != nil {
			return nil, err
		}
	}
	if err := WriteSnapshotFile(f.Config, filepath.Join(f.Path, SnapshotName)); err != nil {
		return nil, err
	}
	if f.Answers == "" {
		return found, nil
	}
	text, err := json.MarshalIndent(found, "", " ")
	if err != nil {
		return nil, fmt.Errorf("writing the answers: %w", err)
	}
	return found, output.WriteBytes(f.Answers, append(text, '\n'))
}
