package request

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoCriticalPath: why there is none is said where it was asked for, and only there.
func TestNoCriticalPath(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "cpu.json")
	if err := os.WriteFile(trace, []byte(`{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 9}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, asked := range []bool{true, false} {
		q := Request{Paths: []string{trace}, CriticalPath: asked, Columns: 100}
		var out bytes.Buffer
		if err := q.Run(context.Background(), &out, &out); err != nil {
			t.Fatal(err)
		}
		if said := strings.Contains(out.String(), "! no critical path: nothing that ran on a device was recorded"); said != asked {
			t.Errorf("asked for: %v, said: %v\n%s", asked, said, &out)
		}
	}
}
