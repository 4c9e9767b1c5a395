package gpu

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/requirement"
)

// buildFake compiles the fake driver once per variant.
func buildFake(t testing.TB, defines ...string) string {
	t.Helper()
	fakes.Lock()
	defer fakes.Unlock()
	key := strings.Join(defines, " ")
	if path, ok := fakes.built[key]; ok {
		return path
	}
	if _, err := exec.LookPath("cc"); err != nil && os.Getenv("CC") == "" {
		requirement.Missing(t, requirement.Compiler, "no C compiler to build the fake NVML library with")
	}
	path := filepath.Join(fakes.dir, fmt.Sprintf("libnvidia-ml-%d.so", len(fakes.built)))
	out, err := exec.Command("testdata/fakenvml/build.sh", append([]string{path}, defines...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("building the fake NVML library: %v\n%s", err, out)
	}
	fakes.built[key] = path
	return path
}

var fakes = struct {
	sync.Mutex
	dir   string
	built map[string]string
}{built: make(map[string]string)}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "fakenvml")
	if err != nil {
		panic(err)
	}
	fakes.dir = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// openFake opens the fake driver with a script. All tests of this process share
// the one library: it reads its script anew whenever it is opened.
func openFake(t testing.TB, script string) *Driver {
	t.Helper()
	library := buildFake(t)
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OMNI_PERF_FAKE_NVML", file)
	return Open(library)
}

// collectFor records for a while and returns what was written.
func collectFor(t testing.TB, d *Driver, length time.Duration, opts Options) *timeline.Recording {
	t.Helper()
	builder := timeline.NewBuilder(timeline.Options{})
	collectInto(t, builder, d, length, opts)
	return builder.Snapshot(builder.Since(timeline.Monotonic()))
}

func collectInto(t testing.TB, builder *timeline.Builder, d *Driver, length time.Duration, opts Options) {
	t.Helper()
	<-d.Ready()
	ctx, cancel := timeoutContext(length)
	defer cancel()
	returned := make(chan error, 1)
	go func() { returned <- d.Collect(ctx, builder, opts) }()
	select {
	case <-returned:
	case <-time.After(length + 10*time.Second):
		t.Fatal("Collect did not return after its context was done")
	}
	<-ctx.Done()
}

func timeoutContext(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

func track(r *timeline.Recording, id string) *timeline.Track {
	for i := range r.Tracks {
		if r.Tracks[i].ID == id {
			return &r.Tracks[i]
		}
	}
	return nil
}

// mean is a rate track's mean over the part of [from, to] it knows, and the
// share of [from, to] it knows.
func mean(tr *timeline.Track, from, to timeline.Nanos) (value, known float64) {
	if tr == nil {
		return 0, 0
	}
	sum, length := 0.0, 0.0
	for _, p := range tr.Points {
		a, b := max(p.From, from), min(p.At, to)
		if a < b && p.Value == p.Value {
			sum += p.Value * float64(b-a)
			length += float64(b - a)
		}
	}
	if length == 0 {
		return 0, 0
	}
	return sum / length, length / float64(to-from)
}

func noted(r *timeline.Recording, what, reason string) bool {
	for _, n := range r.Notes {
		if strings.HasPrefix(n.What, what) && strings.Contains(n.Reason, reason) {
			return true
		}
	}
	return false
}
