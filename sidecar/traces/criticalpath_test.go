package traces

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

// TestCriticalPathOfRealTraces: given the recorded lengths the graph takes as long as was recorded; the parts of the path, and its causes, add
// up to that; and no cause saves more than it takes.
func TestCriticalPathOfRealTraces(t *testing.T) {
	root := sharedTraces(t)
	folders, _ := filepath.Glob(filepath.Join(root, "*", "source.json"))
	for _, source := range folders {
		dir := filepath.Dir(source)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			a := Analyze(loadShared(t, dir, kineto.Options{}), analyses.Options{Tables: analyses.CriticalPath()})
			path, replays := a.Table(analyses.TableCriticalPath), a.Table(analyses.TableCriticalPathReplay)
			if !a.Device && replays.Note != "no device events" || a.Device && replays.Len() != len(a.Ranks) {
				t.Fatalf("%d replays of %d ranks: %s", replays.Len(), len(a.Ranks), replays.Note)
			}
			for r := range replays.Len() {
				rank, recorded := replays.IntAt("rank", r), replays.FloatAt("recorded_us", r)
				if of := replays.FloatAt("replayed_share", r); of < 0.99 || of > 1.01 {
					t.Errorf("rank %d: replayed %.4f of what was recorded", rank, of)
				}
				if of := replays.FloatAt("usual_share", r); of > 1.0001 {
					t.Errorf("rank %d: %.4f of what was recorded with shorter delays", rank, of)
				}
				sums := map[string]float64{}
				for row := range path.Len() {
					if path.IntAt("rank", row) != rank {
						continue
					}
					us := path.FloatAt("path_us", row)
					sums[path.TextAt("by", row)] += us
					if saved := path.FloatAt("saved_us", row); saved > 1.05*us+10 {
						t.Errorf("rank %d: %q saves %.0f µs of %.0f", rank, path.TextAt("name", row), saved, us)
					}
				}
				for _, by := range []string{analyses.PathCause, analyses.PathPart} {
					if of := sums[by] / recorded; of < 0.9999 || of > 1.0001 {
						t.Errorf("rank %d: by %s it is %.4f of what was recorded", rank, by, of)
					}
				}
			}
		})
	}
}

// TestCriticalPathAgainstHTA compares with HolisticTraceAnalysis 0.5.0, for its own example: critical_path_analysis(rank=0,
// annotation="[param|pytorch.model.alex_net|0|0|0|measure|forward]", instance_id=1), get_critical_path_breakdown() by bound_by.
//
// What the host did between operators (HTA: nothing) and until the step ends is host time here, so that the path is as long as
// the step. The device's part is the same.
func TestCriticalPathAgainstHTA(t *testing.T) {
	const annotation = `"[param|pytorch.model.alex_net|0|0|0|measure|forward]"`
	files, _ := filepath.Glob(filepath.Join(sharedTraces(t), "a100-alexnet-sync", "*.json.gz"))
	packed, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(text, []byte(annotation))
	text = append(text[:at:at], append([]byte(`"ProfilerStep#1"`), text[at+len(annotation):]...)...)
	file := filepath.Join(t.TempDir(), "step.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := Run(context.Background(), []string{file}, kineto.Options{}, analyses.Options{Tables: analyses.CriticalPath()})
	if err != nil {
		t.Fatal(err)
	}
	path := a.Table(analyses.TableCriticalPath)
	got, whole := map[string]float64{}, 0.0
	for r := range path.Len() {
		if path.TextAt("by", r) == analyses.PathPart {
			got[path.TextAt("name", r)] = path.FloatAt("path_us", r)
			whole += path.FloatAt("path_us", r)
		}
	}
	const step = 36356
	if whole != step {
		t.Errorf("the path is %.0f µs long, the step %d", whole, step)
	}
	for name, us := range map[string]float64{"computing": 3712, "queued": 50, "launching": 30} {
		if math.Abs(got[name]-us) > 10 {
			t.Errorf("%s: %.0f µs, HTA %.0f", name, got[name], us)
		}
	}
	if host := got["host"]; host < 32042 {
		t.Errorf("the host has %.0f µs, in HTA its operators have 32,042", host)
	}
}
