package cupti

import (
	"bufio"
	"context"
	"fmt"
	"io"
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

// built is a folder with the shim, the stand-in for libcupti and the program that drives both.
type built struct {
	once sync.Once
	path string
	err  error
}

var (
	plain  built
	thread built // -fsanitize=thread
	memory built // -fsanitize=address
)

func TestMain(m *testing.M) {
	code := m.Run()
	for _, b := range []*built{&plain, &thread, &memory} {
		os.RemoveAll(b.path)
	}
	os.Exit(code)
}

func (b *built) folder(t testing.TB, flags ...string) string {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil && os.Getenv("CC") == "" {
		requirement.Missing(t, requirement.Compiler, "no C compiler to build the library with")
	}
	for _, pattern := range []string{"shim/*", "testdata/*.*"} { // opened, so that go test does not take an old result for theirs
		files, _ := filepath.Glob(pattern)
		for _, name := range files {
			if _, err := os.ReadFile(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.once.Do(func() {
		if b.path, b.err = os.MkdirTemp("", "cupti-"); b.err != nil {
			return
		}
		for _, command := range [][]string{{"shim/build.sh", filepath.Join(b.path, "shim.so"), "-Werror"}, {"testdata/build.sh", b.path, "-Werror"}} {
			if out, err := exec.Command(command[0], append(command[1:], flags...)...).CombinedOutput(); err != nil {
				b.err = fmt.Errorf("%v: %w\n%s", command, err, out)
				return
			}
		}
	})
	if b.err != nil {
		t.Fatal(b.err)
	}
	return b.path
}

// program is the driver at work, with a Collector beside it.
type program struct {
	t       testing.TB
	pid     int
	ring    string
	input   io.WriteCloser
	output  *bufio.Reader
	command *exec.Cmd
	stderr  strings.Builder
	stop    context.CancelFunc
	done    chan struct{}
	work    []timeline.DeviceWork
	notes   []string
}

// Since, AddWork and Note are the Collector's sink: a recording that began with the machine.
func (p *program) Since(monotonic int64) timeline.Nanos { return timeline.Nanos(monotonic) }
func (p *program) AddWork(w timeline.DeviceWork)        { p.work = append(p.work, w) }
func (p *program) Note(id timeline.NoteID, what, reason string) {
	p.notes = append(p.notes, fmt.Sprintf("%s %s: %s", id, what, reason))
}

// start starts the driver with settings of the stand-in. collect: whether its ring is read meanwhile.
func start(t testing.TB, folder, settings string, collect bool, environment ...string) *program {
	t.Helper()
	return startWith(t, folder, settings, collect, nil, environment...)
}

// startWith has the Collector ask scarce.
func startWith(t testing.TB, folder, settings string, collect bool, scarce func() bool, environment ...string) *program {
	t.Helper()
	folder, libraries := t.TempDir(), folder
	fake := filepath.Join(libraries, "libcupti.so")
	p := &program{t: t, done: make(chan struct{})}
	p.command = exec.Command(filepath.Join(libraries, "driver"), filepath.Join(libraries, "shim.so"), fake, folder)
	p.command.Env = append(os.Environ(), "OMNI_PERF_CUPTI_LIBRARY="+fake, "OMNI_PERF_FAKE_CUPTI="+settings)
	p.command.Env = append(p.command.Env, environment...)
	p.command.Stderr = &p.stderr
	p.input, _ = p.command.StdinPipe()
	output, _ := p.command.StdoutPipe()
	p.output = bufio.NewReader(output)
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	p.pid = p.command.Process.Pid
	p.ring = filepath.Join(folder, fmt.Sprintf("exact-%d", p.pid))
	t.Cleanup(func() { p.input.Close(); _ = p.command.Process.Kill(); _ = p.command.Wait() })
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	if !collect {
		close(p.done)
		return p
	}
	go func() {
		defer close(p.done)
		_ = Collector{Folder: folder, Scarce: scarce}.Collect(ctx, p)
	}()
	return p
}

// say sends a line and reads the answer's numbers, where there is one.
func (p *program) say(format string, args ...any) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.input, format+"\n", args...); err != nil {
		p.t.Fatalf("%s: %v\n%s", format, err, p.stderr.String())
	}
}

func (p *program) ask(format string, args ...any) (a, b int64) {
	p.t.Helper()
	p.say(format, args...)
	line, err := p.output.ReadString('\n')
	if err != nil {
		p.t.Fatalf("%s: no answer: %v\n%s", format, err, p.stderr.String())
	}
	_, _ = fmt.Sscan(line, &a, &b)
	return a, b
}

// end waits for the program and returns what was delivered.
func (p *program) end() *program {
	p.t.Helper()
	p.input.Close()
	_ = p.command.Wait()
	p.collected()
	return p
}

func (p *program) collected() {
	p.t.Helper()
	p.stop()
	select {
	case <-p.done:
	case <-time.After(10 * time.Second):
		p.t.Fatal("the collector does not end")
	}
}
