package truth

import (
	"bufio"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

//go:embed programs/*.py
var programs embed.FS

// A Workload is one of the programs with its settings.
type Workload struct {
	Name   string   // its file in programs/, without .py
	Env    []string // settings, as KEY=VALUE
	Source string   // of a program that is not in programs/; it may import harness as those do
}

// The workloads; each program's first lines say what it does.
var (
	Work     = Workload{Name: "work"}
	Flat     = Workload{Name: "flat"}
	Deep     = Workload{Name: "deep"}
	Handover = Workload{Name: "handover"}
	Native   = Workload{Name: "native"}
	Parts    = Workload{Name: "parts"}
	Lines    = Workload{Name: "lines"}
)

// Generators and Tasks compute for about item between two yields or awaits; 0 is as fast as can be.
func Generators(item time.Duration) Workload { return perItem("generators", item) }
func Tasks(item time.Duration) Workload      { return perItem("tasks", item) }

// Naps computes for about item after each sleep of a length.
func Naps(nap, item time.Duration) Workload {
	w := perItem("naps", item)
	w.Env = append(w.Env, fmt.Sprintf("OMNI_PERF_NAP_US=%d", nap.Microseconds()))
	return w
}

// EventLoops makes a new event loop for every dozen items of Tasks: fast code of asyncio's own.
func EventLoops() Workload {
	w := Tasks(100 * time.Microsecond)
	w.Env = append(w.Env, "OMNI_PERF_STEPS=3")
	return w
}

func perItem(name string, item time.Duration) Workload {
	return Workload{Name: name, Env: []string{fmt.Sprintf("OMNI_PERF_ITEM_US=%d", item.Microseconds())}}
}

// Threads has count threads, all but the main one idle.
func Threads(count int) Workload {
	return Workload{Name: "threads", Env: []string{fmt.Sprintf("OMNI_PERF_THREADS=%d", count)}}
}

// Forked has a workload done by as many processes more, which it forks when it begins.
func (w Workload) Forked(count int) Workload {
	w.Env = append(slices.Clip(w.Env), fmt.Sprintf("OMNI_PERF_FORKS=%d", count))
	return w
}

// Paced has a workload note how far it has come, every 10 ms and more.
func (w Workload) Paced() Workload {
	w.Env = append(slices.Clip(w.Env), "OMNI_PERF_PACES=1")
	return w
}

// Measured is what a workload says of itself when it ends.
type Measured struct {
	Rounds  int                `json:"rounds"`
	WallNs  int64              `json:"wall_ns"`
	CPUNs   int64              `json:"cpu_ns"`
	SpentNs map[string]float64 `json:"spent_ns"`  // Native, Parts and Naps: in each of its functions
	Hot     map[string]int     `json:"hot_lines"` // Lines: where each of its functions spends its time
	Log     []Phase            `json:"log"`       // what began when, of programs that keep one
	Paces   []Pace             `json:"paces"`     // of a program that is Paced
}

// A Pace says how far a target had come at a time.
type Pace struct {
	AtNs, CPUNs int64 // CLOCK_MONOTONIC, and the process's CPU time
	Rounds      int64
}

// UnmarshalJSON reads [at_ns, cpu_ns, rounds].
func (p *Pace) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[3]any{&p.AtNs, &p.CPUNs, &p.Rounds})
}

// A Phase is something that began in a target.
type Phase struct {
	AtNs int64 // CLOCK_MONOTONIC
	Name string
}

// UnmarshalJSON reads [at_ns, name].
func (p *Phase) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[2]any{&p.AtNs, &p.Name})
}

// A Target is a workload that runs. Its methods are for one goroutine.
type Target struct {
	Pid      int
	python   string
	workload Workload
	folder   string
	command  *exec.Cmd
	stdin    io.WriteCloser
	stdout   *bufio.Reader
	stderr   *strings.Builder
	end      sync.Once
}

// Settings of a launch; the zero value runs the workload until it is stopped.
type Settings struct {
	Time   time.Duration // after which it ends by itself; 0 is an hour
	Rounds int           // after which it ends by itself; 0 is no limit
	Held   bool          // it does nothing before Go
	Wrap   []string      // arguments before the script, such as -m and the name of a profiler
}

// Launch starts a workload and returns when it is about to do its first round.
func Launch(python string, w Workload, set Settings) (*Target, error) {
	if set.Time == 0 {
		set.Time = time.Hour
	}
	t := &Target{python: python, workload: w, stderr: &strings.Builder{}}
	var err error
	if t.folder, err = w.unpack(); err != nil {
		return nil, err
	}
	if err := t.start(set); err != nil {
		os.RemoveAll(t.folder)
		return nil, fmt.Errorf("start workload %s on %s: %w", w.Name, python, err)
	}
	if line, err := t.stdout.ReadString('\n'); line != "READY\n" {
		t.Kill()
		return nil, fmt.Errorf("workload %s on %s said %q instead of READY (%w): %s", w.Name, python, line, err, t.stderr)
	}
	if !set.Held {
		t.Go()
	}
	return t, nil
}

func (t *Target) start(set Settings) error {
	t.command = t.workload.command(t.python, t.folder, set.Wrap,
		"run", fmt.Sprint(set.Time.Seconds()), strconv.Itoa(set.Rounds))
	t.command.Stderr = t.stderr
	stdout, err := t.command.StdoutPipe()
	if err != nil {
		return err
	}
	t.stdout = bufio.NewReader(stdout)
	if t.stdin, err = t.command.StdinPipe(); err != nil {
		return err
	}
	if err := t.command.Start(); err != nil {
		return err
	}
	t.Pid = t.command.Process.Pid
	return nil
}

// Go lets a held target begin. A target that has died says so in Stop or Wait.
func (t *Target) Go() { t.stdin.Write([]byte{'\n'}) }

// Start is Launch for a test, which ends the target with itself.
func Start(t testing.TB, python Interpreter, w Workload) *Target {
	t.Helper()
	target, err := Launch(python.Path, w, Settings{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Kill)
	return target
}

// Stop ends the target after its present round and returns what it measured.
func (t *Target) Stop() (Measured, error) {
	t.stdin.Close()
	return t.Wait()
}

// Wait waits for the target's last round, ends the target and returns what it measured.
func (t *Target) Wait() (Measured, error) {
	m, err := t.Done()
	t.end.Do(func() {
		t.stdin.Close()
		// A profiler inside it writes its output now.
		overdue := time.AfterFunc(time.Minute, func() { t.command.Process.Kill() })
		t.command.Wait()
		overdue.Stop()
		os.RemoveAll(t.folder)
	})
	return m, err
}

// Done waits for the target's last round and returns what it measured. The target stays, doing nothing.
func (t *Target) Done() (Measured, error) {
	var m Measured
	line, err := t.stdout.ReadString('\n')
	if err == nil {
		err = json.Unmarshal([]byte(line), &m)
	}
	if err != nil {
		t.Kill()
		return m, fmt.Errorf("workload %s on %s ended without its figures: %w: %s", t.workload.Name, t.python, err, t.stderr)
	}
	return m, nil
}

// Kill ends the target if it still runs, and removes its files.
func (t *Target) Kill() {
	t.end.Do(func() {
		t.stdin.Close()
		t.command.Process.Kill()
		t.command.Wait()
		os.RemoveAll(t.folder)
	})
}

// Legal observes the target's workload in another process.
func (t *Target) Legal() (*Legal, error) { return Observe(t.python, t.workload) }

// Observe runs a few rounds of a workload under the interpreter's own profiling hook and returns what
// can occur in it.
func Observe(python string, w Workload) (*Legal, error) {
	folder, err := w.unpack()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	command := w.command(python, folder, nil, "edges")
	stdin, err := command.StdinPipe() // stays open: the workload ends when it closes
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	var stderr strings.Builder
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("observe workload %s on %s: %w: %s", w.Name, python, err, &stderr)
	}
	legal, err := parseLegal(output)
	if err != nil {
		return nil, fmt.Errorf("observe workload %s on %s: %w", w.Name, python, err)
	}
	return legal, nil
}

func parseLegal(document []byte) (*Legal, error) {
	var observed struct {
		Edges     [][3]any         `json:"edges"`     // caller, its line, callee
		Creations [][3]any         `json:"creations"` // caller, callee, its line
		Lines     map[string][]int `json:"lines"`
		Roots     []string         `json:"roots"`
		Depth     int              `json:"depth"`
	}
	if err := json.Unmarshal(document, &observed); err != nil {
		return nil, err
	}
	l := &Legal{
		pairs:     map[[2]string]bool{},
		calls:     map[call]bool{},
		creations: map[call]bool{},
		lines:     map[string]map[int]bool{},
		roots:     map[string]bool{},
		depth:     observed.Depth,
	}
	for _, edge := range observed.Edges {
		caller, ok1 := edge[0].(string)
		line, ok2 := edge[1].(float64)
		callee, ok3 := edge[2].(string)
		if !ok1 || !ok2 || !ok3 {
			return nil, fmt.Errorf("edge %v is not caller, line, callee", edge)
		}
		l.pairs[[2]string{caller, callee}] = true
		l.calls[call{caller, int(line), callee}] = true
	}
	for _, creation := range observed.Creations {
		caller, ok1 := creation[0].(string)
		callee, ok2 := creation[1].(string)
		line, ok3 := creation[2].(float64)
		if !ok1 || !ok2 || !ok3 {
			return nil, fmt.Errorf("creation %v is not caller, callee, line", creation)
		}
		l.creations[call{caller, int(line), callee}] = true
	}
	for name, lines := range observed.Lines {
		l.lines[name] = map[int]bool{}
		for _, line := range lines {
			l.lines[name][line] = true
		}
	}
	for _, root := range observed.Roots {
		l.roots[root] = true
	}
	return l, nil
}

func (w Workload) command(python, folder string, wrap []string, arguments ...string) *exec.Cmd {
	arguments = slices.Concat(wrap, []string{filepath.Join(folder, w.Name+".py")}, arguments)
	command := exec.Command(python, arguments...)
	command.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	command.Env = append(command.Env, w.Env...)
	return command
}

// unpack writes the programs to a new folder among the temporary files, the one place that a
// container's interpreter shares with us.
func (w Workload) unpack() (string, error) {
	folder, err := os.MkdirTemp("", "omni-perf-truth-")
	if err != nil {
		return "", err
	}
	source, err := fs.Sub(programs, "programs")
	if err == nil {
		err = os.CopyFS(folder, source)
	}
	if err == nil && w.Source != "" {
		err = os.WriteFile(filepath.Join(folder, w.Name+".py"), []byte(w.Source), 0o600)
	}
	if err != nil {
		os.RemoveAll(folder)
		return "", fmt.Errorf("unpack workloads: %w", err)
	}
	return folder, nil
}
