package gpu

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
)

// series is what a Device answered over some seconds, as testdata/series keeps
// it: it stands in for hardware that is not at hand. Times are nanoseconds since
// the recording's start.
type series struct {
	Recorded   string
	Device     Info
	Length     int64
	Activities []activitySeries // every source the device offers, the finest first
	Refused    *refusal         `json:",omitempty"` // why it offers none
	Gauges     map[string][]answer
}

// activitySeries is one source of activity.
type activitySeries struct {
	Source string
	Clock  string `json:",omitempty"` // of the sample buffer's times, as found out
	Period time.Duration
	Reads  []activityRead
}

type activityRead struct {
	At         int64
	Resolution time.Duration
	Windows    []windowRead `json:",omitempty"`
	Refused    *refusal     `json:",omitempty"`
}

// windowRead is a Window without the unknown figures, by lane.
type windowRead struct {
	From, At int64
	Values   map[string]float64
}

// answer is one reading of a figure; what it holds depends on the figure.
type answer struct {
	At        int64
	Value     float64
	Total     uint64                    `json:",omitempty"`
	Processes []Process                 `json:",omitempty"`
	Reasons   []timeline.ThrottleReason `json:",omitempty"`
	Refused   *refusal                  `json:",omitempty"`
}

// refusal is an error and which of the package's own it is.
type refusal struct{ Text, Kind string }

var refusalKinds = map[string]error{"unsupported": ErrUnsupported, "no data": ErrNoData, "lost": ErrLost}

func refused(err error) *refusal {
	if err == nil {
		return nil
	}
	for kind, target := range refusalKinds {
		if errors.Is(err, target) {
			return &refusal{err.Error(), kind}
		}
	}
	return &refusal{err.Error(), ""}
}

// Error and Unwrap make the refusal the error it was.
func (r *refusal) Error() string { return r.Text }
func (r *refusal) Unwrap() error { return refusalKinds[r.Kind] }

func (r *refusal) err() error {
	if r == nil {
		return nil
	}
	return r
}

// figures read what a device knows beside its activity.
var figures = map[string]func(Device) (answer, error){
	"mem": func(d Device) (answer, error) {
		m, err := d.Memory()
		return answer{Value: float64(m.Used), Total: m.Total}, err
	},
	"processes": func(d Device) (answer, error) {
		list, err := d.Processes()
		return answer{Processes: list}, err
	},
	"throttle": func(d Device) (answer, error) {
		t, err := d.Throttle()
		return answer{Reasons: t.Reasons}, err
	},
	"power": func(d Device) (a answer, err error) { a.Value, err = d.Power(); return a, err },
	"clock": func(d Device) (a answer, err error) { a.Value, err = d.Clock(); return a, err },
	"temp":  func(d Device) (a answer, err error) { a.Value, err = d.Temperature(); return a, err },
}

// recordSeries asks a device for everything it knows until done is closed.
func recordSeries(d Device, done <-chan struct{}) *series {
	start := timeline.Monotonic()
	now := func() int64 { return timeline.Monotonic() - start }
	s := &series{Recorded: time.Now().UTC().Format(time.DateOnly), Device: d.Info(), Gauges: map[string][]answer{}}
	s.Device.UUID = "" // says whose GPU it is, and nothing about it
	activities, err := d.Activities()
	s.Refused = refused(err)
	next := make([]int64, len(activities))
	for _, a := range activities {
		defer a.Close()
		s.Activities = append(s.Activities, activitySeries{Source: a.Source(), Period: a.Period()})
	}
	nextFigures := int64(0)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for last := false; !last; {
		select {
		case <-done:
			last = true
		case <-ticker.C:
		}
		for i, a := range activities {
			if last || now() >= next[i] {
				next[i] = now() + int64(a.Period())
				s.Activities[i].read(a, last, start)
			}
		}
		if last || now() >= nextFigures {
			nextFigures = now() + int64(slowInterval)
			for name, read := range figures {
				one, err := read(d)
				one.At, one.Refused = now(), refused(err)
				s.Gauges[name] = append(s.Gauges[name], one)
			}
		}
	}
	s.Length = now()
	return s
}

func (s *activitySeries) read(a Activity, last bool, start int64) {
	read := a.Read
	if last {
		read = a.Finish
	}
	windows, err := read()
	one := activityRead{At: timeline.Monotonic() - start, Resolution: a.Resolution(), Refused: refused(err)}
	for _, w := range windows {
		values := map[string]float64{}
		for m, v := range w.Values {
			if v == v {
				values[laneOf[m].name] = v
			}
		}
		one.Windows = append(one.Windows, windowRead{w.From - start, w.At - start, values})
	}
	if b, ok := a.(*samples); ok {
		s.Clock = b.clock.name
	}
	if len(windows) > 0 || err != nil || last {
		s.Reads = append(s.Reads, one)
	}
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9.]+`)

// write keeps the series in a file named by device and driver.
func (s *series) write(folder string) (path string, err error) {
	name := fmt.Sprintf("%s-%d-%s.json", s.Device.Name, s.Device.Index, s.Device.Driver)
	path = filepath.Join(folder, notInNames.ReplaceAllString(name, "-"))
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return path, err
	}
	return path, os.WriteFile(path, append(text, '\n'), 0o644)
}

func readSeries(path string) (*series, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var s series
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &s, nil
}

// replay is the Device a series was recorded from, over again from start on.
type replay struct {
	*series
	start int64 // CLOCK_MONOTONIC
}

func (r *replay) Info() Info { return r.Device }

func (r *replay) Activities() ([]Activity, error) {
	var list []Activity
	for i := range r.series.Activities {
		list = append(list, &replayedActivity{activitySeries: &r.series.Activities[i], start: r.start})
	}
	return list, r.Refused.err()
}

// at is what the device answered last, or will answer first.
func (r *replay) at(name string) (answer, error) {
	list := r.Gauges[name]
	if len(list) == 0 {
		return answer{}, ErrUnsupported
	}
	i, _ := slices.BinarySearchFunc(list, timeline.Monotonic()-r.start, func(a answer, t int64) int { return cmp.Compare(a.At, t) })
	one := list[max(i-1, 0)]
	return one, one.Refused.err()
}

func (r *replay) value(name string) (float64, error) {
	one, err := r.at(name)
	return one.Value, err
}

func (r *replay) Power() (float64, error)       { return r.value("power") }
func (r *replay) Errors() (Errors, error)       { return nil, ErrUnsupported }
func (r *replay) Energy() (float64, error)      { return 0, ErrUnsupported } // it would depend on when it is asked
func (r *replay) Clock() (float64, error)       { return r.value("clock") }
func (r *replay) Temperature() (float64, error) { return r.value("temp") }

func (r *replay) Memory() (Memory, error) {
	one, err := r.at("mem")
	return Memory{Used: uint64(one.Value), Total: one.Total}, err
}

func (r *replay) Processes() ([]Process, error) {
	one, err := r.at("processes")
	return one.Processes, err
}

func (r *replay) Throttle() (Throttle, error) {
	one, err := r.at("throttle")
	return Throttle{one.Reasons}, err
}

// replayedActivity answers what the source had answered by the same time.
type replayedActivity struct {
	*activitySeries
	start      int64
	delivered  int // reads of activitySeries
	resolution time.Duration
}

func (a *replayedActivity) Source() string            { return a.activitySeries.Source }
func (a *replayedActivity) Period() time.Duration     { return a.activitySeries.Period }
func (a *replayedActivity) Resolution() time.Duration { return a.resolution }
func (a *replayedActivity) Finish() ([]Window, error) { return a.Read() }
func (a *replayedActivity) Close()                    {}

func (a *replayedActivity) Read() ([]Window, error) {
	now := timeline.Monotonic() - a.start
	var windows []Window
	for ; a.delivered < len(a.Reads) && a.Reads[a.delivered].At <= now; a.delivered++ {
		read := a.Reads[a.delivered]
		if read.Refused != nil {
			return nil, read.Refused // again and again: what was noted stays
		}
		a.resolution = read.Resolution
		for _, w := range read.Windows {
			window := newWindow(w.From+a.start, w.At+a.start)
			for m := range window.Values {
				if v, known := w.Values[laneOf[m].name]; known {
					window.Values[m] = v
				}
			}
			windows = append(windows, window)
		}
	}
	return windows, nil
}

// Every series in testdata, from real devices and from the fake driver, gives
// the lanes that its answers say.
func TestSeriesAreReplayed(t *testing.T) {
	paths, err := filepath.Glob("testdata/series/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no series in testdata/series: %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel() // they only wait
			s, err := readSeries(path)
			if err != nil {
				t.Fatal(err)
			}
			checkReplay(t, s)
		})
	}
}

// What is recorded now is what a file brings back.
func TestSeriesOfTheFakeDriver(t *testing.T) {
	for _, c := range []struct{ name, script, source string }{
		{"GPM", "gpm 1\nprocess 4000001 700\nthrottle 0x4\nfail nvmlDeviceGetPowerUsage 3", "GPM"},
		{"sample buffer", "fail nvmlDeviceGetClockInfo 999 3", "NVML sample buffer"},
		{"rates", "samples 0", "NVML utilization rates"},
		{"MIG", "mig 1", ""},
		{"GPU lost", "gpm 1\nfail nvmlGpmSampleGet 15 5", "GPM"},
	} {
		t.Run(c.name, func(t *testing.T) {
			retry.Again(t, func(t *retry.Attempt) {
				d := openFake(t, "driver 550.54\nperiod_ms 20\ndevice A\nutil 0 20\nutil 400 90\nutil 700 0\n"+c.script)
				if d.Err() != nil {
					t.Fatal(d.Err())
				}
				path, err := recordFor(d.Devices()[0], 900*time.Millisecond).write(t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				if got, want := filepath.Base(path), "A-simulated-0-550.54.json"; got != want && c.name != "MIG" {
					t.Errorf("kept as %s, want %s", got, want)
				}
				s, err := readSeries(path)
				if err != nil {
					t.Fatal(err)
				}
				if c.source != "" && (len(s.Activities) == 0 || s.Activities[0].Source != c.source) {
					t.Errorf("activities %+v, want %s first", s.Activities, c.source)
				}
				checkReplay(t, s)
			})
		})
	}
}

func recordFor(d Device, length time.Duration) *series {
	done := make(chan struct{})
	time.AfterFunc(length, func() { close(done) })
	return recordSeries(d, done)
}

// checkReplay collects from a series' device and compares the lanes with the
// series itself.
func checkReplay(t testing.TB, s *series) {
	t.Helper()
	builder := timeline.NewBuilder(timeline.Options{})
	device := &replay{series: s, start: timeline.Monotonic()}
	// A little longer, so that the last answers are heard.
	ctx, cancel := timeoutContext(time.Duration(s.Length) + 50*time.Millisecond)
	defer cancel()
	none := func() []int { return nil } // the recorded processes may have numbers that are others' here
	if err := collect(ctx, []Device{device}, builder, Options{PIDs: none}); err != nil {
		t.Fatal(err)
	}
	r := builder.Snapshot(builder.Since(timeline.Monotonic()))
	if len(r.GPUs) != 1 || r.GPUs[0].Name != s.Device.Name || r.GPUs[0].Driver != s.Device.Driver {
		t.Fatalf("GPUs %+v, want %+v", r.GPUs, s.Device)
	}
	start, lost := builder.Since(device.start), false
	if len(s.Activities) == 0 {
		if !noted(r, fmt.Sprintf("gpu%d.util", s.Device.Index), s.Refused.Text) {
			t.Errorf("notes %v do not say that %s", r.Notes, s.Refused.Text)
		}
	} else {
		first := s.Activities[0]
		if r.GPUs[0].Source != first.Source {
			t.Errorf("source %q, want %q", r.GPUs[0].Source, first.Source)
		}
		lost = first.Reads[len(first.Reads)-1].Refused != nil
		for _, lane := range laneOf {
			checkWindows(t, track(r, fmt.Sprintf("gpu%d.%s", s.Device.Index, lane.name)), &first, lane.name, start)
		}
	}
	if lost {
		for _, lane := range r.Tracks {
			if lane.Ended == "" {
				t.Errorf("%s goes on after the GPU was lost", lane.ID)
			}
		}
		return
	}
	others := 0
	for _, one := range s.Gauges["processes"] {
		others = max(others, len(one.Processes))
	}
	if r.GPUs[0].OtherProcesses != others {
		t.Errorf("%d other processes, want %d", r.GPUs[0].OtherProcesses, others)
	}
	for name, answers := range s.Gauges {
		if name != "processes" {
			checkGauge(t, r, s.Device.Index, name, answers)
		}
	}
}

// checkWindows holds a lane against the windows of the source it came from.
func checkWindows(t testing.TB, lane *timeline.Track, a *activitySeries, name string, start timeline.Nanos) {
	t.Helper()
	sum, length, from, to := 0.0, 0.0, int64(math.MaxInt64), int64(0)
	for _, read := range a.Reads {
		for _, w := range read.Windows {
			value, known := w.Values[name]
			if w.From < 0 || !known {
				continue // before the recording
			}
			sum += value * float64(w.At-w.From)
			length += float64(w.At - w.From)
			from, to = min(from, w.From), max(to, w.At)
		}
	}
	if length == 0 {
		if lane != nil && len(lane.Points) > 1 {
			t.Errorf("%s has %d points, the series none", lane.ID, len(lane.Points))
		}
		return
	}
	got, known := mean(lane, start+timeline.Nanos(from), start+timeline.Nanos(to))
	if want := sum / length; math.Abs(got-want) > 1e-6*max(1, want) {
		t.Errorf("%s: mean %v, want %v", name, got, want)
	}
	if want := length / float64(to-from); math.Abs(known-want) > 1e-6 {
		t.Errorf("%s: known for %v of the time, want %v", name, known, want)
	}
}

func checkGauge(t testing.TB, r *timeline.Recording, index int, name string, answers []answer) {
	t.Helper()
	lane := track(r, fmt.Sprintf("gpu%d.%s", index, name))
	last := answers[len(answers)-1]
	if first := answers[0].Refused; first != nil {
		if lane != nil || !noted(r, fmt.Sprintf("gpu%d.%s", index, name), first.Text) {
			t.Errorf("%s: lane %v, notes %v; want none and that %s", name, lane, r.Notes, first.Text)
		}
		return
	}
	if lane == nil || len(lane.Points) == 0 {
		t.Errorf("%s: no lane", name)
		return
	}
	if last.Refused != nil {
		if lane.Ended != last.Refused.Text {
			t.Errorf("%s ended %q, want %q", name, lane.Ended, last.Refused.Text)
		}
		return
	}
	want := last.Value
	if name == "throttle" && len(last.Reasons) > 0 {
		want = 1
	}
	if got := lane.Points[len(lane.Points)-1].Value; got != want {
		t.Errorf("%s = %v, want %v", name, got, want)
	}
}
