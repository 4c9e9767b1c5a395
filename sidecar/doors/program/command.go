package program

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/doors/python"
)

// Refused says that nothing was run: there is no such script, or its syntax is wrong.
// If its text is empty, it was reported to the user already.
type Refused struct {
	Code int // to exit with
	text string
}

func (r *Refused) Error() string { return r.text }

// exitNoScript is python's own exit code for a script that cannot be opened.
const exitNoScript = 2

// Resolve returns what a command line runs. A file is a script of Python's, as -m, -c and
// - are, unless it is a program itself. What is no file is looked up on PATH and executed as it is, as torchrun or
// mpirun are; python and interpreter, which concern a script, are then an error.
func Resolve(interpreter string, python, what []string) (Script, error) {
	if len(what) > 1 && what[0] == "--" && !strings.HasPrefix(what[1], "-") {
		what = what[1:]
	}
	if len(what) == 0 || strings.HasPrefix(what[0], "-") {
		return Script{Interpreter: interpreter, Args: append(python, what...)}, nil
	}
	name := what[0]
	info, err := os.Stat(name)
	if err == nil {
		if isProgram(name, info) {
			if !strings.Contains(name, "/") {
				name = "./" + name
			}
			return asProgram(name, interpreter, python, what[1:])
		}
		s := Script{Interpreter: interpreter, Args: append(python, what...)}
		if info.Mode().IsRegular() {
			s.file = name
		}
		return s, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return Script{}, &Refused{exitNoScript, fmt.Sprintf("the script %s cannot be opened: %v", name, errors.Unwrap(err))}
	}
	path, lookErr := exec.LookPath(name)
	switch {
	case lookErr != nil && (strings.Contains(name, "/") || filepath.Ext(name) != ""):
		return Script{Interpreter: interpreter, Args: append(python, what...), missing: true}, nil // python says so
	case lookErr != nil:
		return Script{}, &Refused{exitNoScript, fmt.Sprintf("there is no script %s here, and no program of that name on PATH", name)}
	}
	return asProgram(path, interpreter, python, what[1:])
}

func asProgram(path, interpreter string, python, args []string) (Script, error) {
	if interpreter != "" || len(python) > 0 {
		return Script{}, &Refused{exitNoScript, fmt.Sprintf("%s is a program, which is executed as it is: --interpreter and options of python are for scripts", path)}
	}
	return Script{Program: path, Args: args}, nil
}

// isProgram recognises files that are executed as they are, as an environment's bin/python is:
// machine code, and scripts for another interpreter than Python.
func isProgram(name string, info os.FileInfo) bool {
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return false
	}
	file, err := os.Open(name)
	if err != nil {
		return false // python says so
	}
	defer file.Close()
	start := make([]byte, 256)
	n, _ := io.ReadFull(file, start)
	first, _, _ := bytes.Cut(start[:n], []byte("\n"))
	return bytes.HasPrefix(first, []byte("\x7fELF")) || bytes.HasPrefix(first, []byte("#!")) && !bytes.Contains(first, []byte("py"))
}

// command is the program and its arguments, the program's own name first.
func (s Script) command() ([]string, error) {
	if s.Program != "" {
		return append([]string{s.Program}, s.Args...), nil
	}
	interpreter, err := python.OfUser(s.Interpreter)
	if err != nil {
		return nil, err
	}
	return append([]string{interpreter}, s.Args...), nil
}

// maxChecked bounds the scripts whose syntax is checked.
const maxChecked = 16 << 20

// compileOnly compiles what comes on stdin without running it, and says what is wrong as
// python does. No site, no environment: it is to be quick.
const compileOnly = `
import sys
name = sys.argv[1]
try:
    compile(sys.stdin.buffer.read(), name, "exec", dont_inherit=True)
except SyntaxError as error:
    import traceback
    sys.stderr.write("".join(traceback.format_exception_only(error)))
    sys.exit(1)
except Exception:
    pass
`

// check says that a script's syntax is wrong, before anything runs: what python itself
// would say is written to stderr.
func (s Script) check(interpreter string, stderr io.Writer) error {
	if s.missing {
		cmd := exec.Command(interpreter, s.Args...)
		cmd.Stderr = stderr
		var exit *exec.ExitError
		if err := cmd.Run(); errors.As(err, &exit) {
			return &Refused{Code: exit.ExitCode()}
		}
		return &Refused{Code: exitNoScript}
	}
	if s.file == "" || strings.Contains(strings.Join(s.Args, " "), "-x ") { // -x skips the first line
		return nil
	}
	text, err := os.ReadFile(s.file)
	if err != nil {
		return &Refused{exitNoScript, fmt.Sprintf("the script %s cannot be read: %v", s.file, errors.Unwrap(err))}
	}
	if len(text) > maxChecked || bytes.IndexByte(text, 0) >= 0 { // compiled, or an archive
		return nil
	}
	cmd := exec.Command(interpreter, "-I", "-S", "-W", "ignore", "-c", compileOnly, s.file)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(text), stderr
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) && exit.ExitCode() == 1 {
		return &Refused{Code: 1}
	}
	return nil // whatever else is wrong, running it shows
}
