package truth

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

//go:embed realcode.py
var realCode []byte

// A RealProgram is code that nobody wrote for this: a part of the standard library at work, packages that
// are imported, or their own tests.
type RealProgram struct {
	Name      string
	Arguments []string // PROGRAM of realcode.py
	Libraries string   // folder with the packages; empty for the standard library
}

// Library is the standard library at work, for a few seconds.
var Library = RealProgram{Name: "library", Arguments: []string{"library"}}

// A Function is one function of real code.
type Function struct {
	File, Name string
	FirstLine  int
}

// Pairs are the pairs of caller and callee that occur in a program.
type Pairs map[[2]Function]bool

// TraceCalls runs a program under the interpreter's own tracing (sys.monitoring, or sys.setprofile up to
// 3.11) and adds what it calls.
func (p Pairs) TraceCalls(python string, program RealProgram) error {
	folder, err := os.MkdirTemp("", "omni-perf-truth-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	out := filepath.Join(folder, "pairs")
	command, err := program.command(python, folder, "trace", out)
	if err != nil {
		return err
	}
	if said, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("trace %s on %s: %w: %s", program.Name, python, err, said)
	}
	file, err := os.Open(out)
	if err != nil {
		return err
	}
	defer file.Close()
	for d := json.NewDecoder(bufio.NewReader(file)); ; {
		var caller, callee Function
		err := d.Decode(&[6]any{&caller.File, &caller.Name, &caller.FirstLine, &callee.File, &callee.Name, &callee.FirstLine})
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("trace %s: %w", program.Name, err)
		}
		p[[2]Function{caller.plain(), callee.plain()}] = true
	}
}

// plain is the function without what is another in each run: the folder of the driver's file, and the
// numbers in names of code that a program compiled itself, which it counts as networkx does ("compilation 7").
func (f Function) plain() Function {
	switch {
	case filepath.Base(f.File) == driver:
		f.File = driver
	case strings.HasPrefix(f.File, "<"):
		f.File, f.Name = number.ReplaceAllString(f.File, "#"), number.ReplaceAllString(f.Name, "#")
	}
	return f
}

var number = regexp.MustCompile(`[0-9]+`)

const driver = "realcode.py"

// Impossible returns the first pair of neighbours in a stack, root first, that does not occur.
func (p Pairs) Impossible(stack []Function) (pair [2]Function, found bool) {
	for i := 1; i < len(stack); i++ {
		pair = [2]Function{stack[i-1].plain(), stack[i].plain()}
		if pair[1].File == driver && (pair[1].Name == "main" || pair[1].Name == "run_program") {
			continue // called before the tracing begins
		}
		if !p[pair] {
			return pair, true
		}
	}
	return pair, false
}

// A RealTarget is a program that waits for the order to begin.
type RealTarget struct {
	Pid     int
	folder  string
	command *exec.Cmd
	stdin   io.WriteCloser
	stdout  *bufio.Reader
}

// Launch starts a program, which does nothing before Run.
func (p RealProgram) Launch(python string) (*RealTarget, error) {
	folder, err := os.MkdirTemp("", "omni-perf-truth-")
	if err != nil {
		return nil, err
	}
	t := &RealTarget{folder: folder}
	if t.command, err = p.command(python, folder, "run"); err == nil {
		err = t.start()
	}
	if err != nil {
		os.RemoveAll(folder)
		return nil, fmt.Errorf("start %s on %s: %w", p.Name, python, err)
	}
	return t, nil
}

func (t *RealTarget) start() (err error) {
	var stderr strings.Builder
	t.command.Stderr = &stderr
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
	if line, err := t.stdout.ReadString('\n'); line != "READY\n" {
		t.Kill()
		return fmt.Errorf("it said %q (%w): %s", line, err, stderr.String())
	}
	return nil
}

// Run lets the program go and returns when it is done. The process stays.
func (t *RealTarget) Run() error {
	if _, err := t.stdin.Write([]byte{'\n'}); err != nil {
		return err
	}
	line, err := t.stdout.ReadString('\n')
	if line != "DONE\n" {
		return fmt.Errorf("the program said %q instead of DONE: %w", line, err)
	}
	return nil
}

// Kill ends the process and removes its files.
func (t *RealTarget) Kill() {
	t.stdin.Close()
	t.command.Process.Kill()
	t.command.Wait()
	os.RemoveAll(t.folder)
}

// command runs the driver.
func (p RealProgram) command(python, folder string, mode ...string) (*exec.Cmd, error) {
	if err := os.WriteFile(filepath.Join(folder, driver), realCode, 0o600); err != nil {
		return nil, err
	}
	command := exec.Command(python, append(append([]string{driver}, mode...), p.Arguments...)...)
	command.Dir = folder
	// The same order of sets, threads of numeric libraries without work, nothing from the user's own folders.
	command.Env = append(os.Environ(), "PYTHONHASHSEED=0", "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1",
		"PYTHONNOUSERSITE=1", "PYTHONPATH="+p.Libraries)
	return command, nil
}
