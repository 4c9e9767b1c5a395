package gpu

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/requirement"
)

// TestRealGPU shows what the machine's own driver offers.
func TestRealGPU(t *testing.T) {
	r := collectInChild(t, systemLibrary)
	if noted(r, "GPU lanes", ErrNoDriver.Error()) {
		requirement.Missing(t, requirement.GPU, "needs an NVIDIA GPU: %v", r.Notes)
	}
	if len(r.GPUs) == 0 {
		t.Fatalf("no GPU: %v", r.Notes)
	}
	for _, g := range r.GPUs {
		t.Logf("%+v", g)
	}
	for _, tr := range r.Tracks {
		t.Logf("%s from %s every %v; ended: %q", tr.ID, tr.Source, tr.Resolution, tr.Ended)
	}
	for _, n := range r.Notes {
		t.Logf("%s: %s", n.What, n.Reason)
	}
	if track(r, "gpu0.mem") == nil {
		t.Error("not even the memory could be read")
	}
}

// TestRealGPUCosts prints what each reading takes, and of that on the CPU: medians of 25, 110 ms apart.
func TestRealGPUCosts(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	d := Open(systemLibrary)
	if err := d.Err(); err != nil {
		requirement.Missing(t, requirement.GPU, "needs an NVIDIA GPU: %v", err)
	}
	for _, device := range d.Devices() {
		readings := map[string]func() error{
			"memory":      func() error { _, err := device.Memory(); return err },
			"power":       func() error { _, err := device.Power(); return err },
			"energy":      func() error { _, err := device.Energy(); return err },
			"clock":       func() error { _, err := device.Clock(); return err },
			"temperature": func() error { _, err := device.Temperature(); return err },
			"throttle":    func() error { _, err := device.Throttle(); return err },
			"processes":   func() error { _, err := device.Processes(); return err },
		}
		activities, err := device.Activities()
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range activities {
			defer a.Close()
			readings[a.Source()] = func() error { _, err := a.Read(); return err }
		}
		wall, cpu := map[string][]time.Duration{}, map[string][]time.Duration{}
		for range 25 {
			time.Sleep(110 * time.Millisecond)
			for name, read := range readings {
				began, before := time.Now(), timeline.ThreadCPU()
				if err := read(); err != nil {
					t.Logf("%s: %v", name, err)
				}
				wall[name], cpu[name] = append(wall[name], time.Since(began)), append(cpu[name], timeline.ThreadCPU()-before)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(readings)) {
			slices.Sort(wall[name])
			slices.Sort(cpu[name])
			t.Logf("%s: %v, on the CPU %v (most %v)", name, wall[name][12], cpu[name][12], cpu[name][24])
		}
	}
}

// recordFolder names the folder that takes what real devices answer; a series
// in testdata/series is replayed by TestSeriesAreReplayed from then on.
const recordFolder = "OMNI_PERF_RECORD_GPU"

func TestRealGPUIsRecorded(t *testing.T) {
	folder := os.Getenv(recordFolder)
	if folder == "" {
		t.Skipf("set %s=FOLDER to keep what the machine's GPUs answer", recordFolder)
	}
	library := cmp.Or(os.Getenv("OMNI_PERF_NVML_LIBRARY"), systemLibrary)
	child := exec.Command(os.Args[0], "-test.run=^TestChildRecordsSeries$", "-test.v")
	child.Env = append(os.Environ(), "GPU_TEST_LIBRARY="+library)
	out, err := child.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

// TestChildRecordsSeries is a process of its own because the tests of this one
// share the fake library.
func TestChildRecordsSeries(t *testing.T) {
	library, folder := os.Getenv("GPU_TEST_LIBRARY"), os.Getenv(recordFolder)
	if library == "" || folder == "" {
		t.Skip("runs only as a child of TestRealGPUIsRecorded")
	}
	d := Open(library)
	if err := d.Err(); err != nil {
		requirement.Missing(t, requirement.GPU, "needs an NVIDIA GPU: %v", err)
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	done := work(t, library)
	made := make(chan *series)
	for _, device := range d.Devices() {
		go func() { made <- recordSeries(device, done) }()
	}
	for range d.Devices() {
		s := <-made
		path, err := s.write(folder)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.1f s of %s, driver %s", path, float64(s.Length)/1e9, s.Device.Name, s.Device.Driver)
		for _, a := range s.Activities {
			t.Log(a.delays())
		}
	}
}

// work trains on the GPU where tools/torch has made an environment; the channel
// is closed when it is over, or after some idle seconds.
func work(t *testing.T, library string) <-chan struct{} {
	done := make(chan struct{})
	idle := func(seconds time.Duration) <-chan struct{} {
		time.AfterFunc(seconds*time.Second, func() { close(done) })
		return done
	}
	if library != systemLibrary { // a fake one works by its script
		return idle(3)
	}
	python := filepath.Join(cmp.Or(os.Getenv("OMNI_PERF_TORCH"), filepath.Join("..", "..", "..", ".cache", "torch")), "bin", "python")
	program := filepath.Join("..", "..", "..", "magics", "tests", "programs", "train.py")
	if _, err := os.Stat(python); err != nil {
		t.Log("the GPU has nothing to do meanwhile: tools/torch installs what a training needs")
		return idle(10)
	}
	training := exec.Command(python, program, "starved", "--facts", filepath.Join(t.TempDir(), "facts.json"))
	training.Stderr = os.Stderr
	if err := training.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(done)
		if err := training.Wait(); err != nil {
			t.Errorf("the training: %v", err)
		}
	}()
	return done
}

// delays returns how late a source's windows came, and how long they were.
func (s *activitySeries) delays() string {
	var late, length time.Duration
	n := time.Duration(0)
	for _, read := range s.Reads {
		for _, w := range read.Windows {
			late += time.Duration(read.At - w.At)
			length += time.Duration(w.At - w.From)
			n++
		}
	}
	if n == 0 {
		return s.Source + ": no windows"
	}
	return fmt.Sprintf("%s: %d windows of %v, read %v after their end; clock %q", s.Source, n, length/n, late/n, s.Clock)
}
