package host

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/measure/procfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/targetfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Code looks at the files that a target's code objects name, as the target sees
// them and with its rights. It may be used after the target has ended.
type Code struct {
	pid     int
	files   *targetfs.FS
	started time.Time
	install timeline.Installation
	rules   CodeRules
}

// CodeRules decide what of the code is looked at.
type CodeRules struct {
	// Own returns a function that reports whether a file may be the user's own.
	Own func(*timeline.Recording) func(file string) bool
	// Defines reports whether a text has the definition of a function at its first line.
	Defines func(lines []string, first int, function string) bool
}

// NewCode makes it for a target that runs.
func NewCode(target timeline.Target, rules CodeRules) *Code {
	return &Code{pid: target.PID, files: targetfs.New(target.PID), started: startOf(target.PID), install: installationOf(target), rules: rules}
}

// Describe adds to a recording where its Python lies and what is found of the files
// that may be the user's own.
func (c *Code) Describe(rec *timeline.Recording) {
	rec.Target.Started = c.started
	if len(rec.Installation.Prefixes) == 0 { // the target has not reported it
		rec.Installation = installationOf(rec.Target)
		if len(rec.Installation.Prefixes) == 0 { // it has ended
			rec.Installation = c.install
		}
	}
	c.files.Refresh() // relative names begin in the folder that the target is in now
	own := c.rules.Own(rec)
	seen := make(map[string]bool)
	for _, f := range rec.Frames {
		if seen[f.File] {
			continue
		}
		seen[f.File] = true
		if own(f.File) {
			found := c.look(f.File)
			if c.isLate(found) {
				found.Elsewhere = c.elsewhere(f.File, rec.Frames)
				found.Contradicts = found.Compiled != nil && len(found.Elsewhere) > 0
			}
			rec.CodeFiles = append(rec.CodeFiles, found)
		}
	}
}

func (c *Code) look(name string) timeline.CodeFile {
	found := timeline.CodeFile{Name: name}
	file, err := c.files.Open(name)
	if err != nil {
		found.Missing = errors.Is(err, fs.ErrNotExist) || errors.Is(err, targetfs.ErrNotRegular)
		return found
	}
	defer file.Close()
	if st, err := file.Stat(); err == nil {
		found.Modified = st.ModTime()
		if sys, ok := st.Sys().(*syscall.Stat_t); ok {
			found.Placed = time.Unix(sys.Ctim.Unix())
		}
		if c.isLate(found) {
			found.Compiled = c.bytecode(name, st)
		}
	}
	return found
}

// isLate reports whether a file has its text, or is in its place, only since the target started.
func (c *Code) isLate(f timeline.CodeFile) bool {
	return f.Modified.After(c.started) || f.Placed.After(c.started)
}

// elsewhere returns the functions of a file that do not begin where its text says.
func (c *Code) elsewhere(name string, frames []timeline.Frame) (found []timeline.FunctionStart) {
	lines := NewLines(c.files).read(name)
	for _, f := range frames {
		start := timeline.FunctionStart{Function: f.Function, FirstLine: f.FirstLine}
		if f.File == name && f.FirstLine > 0 && f.Function != "<module>" && !c.rules.Defines(lines, f.FirstLine, f.Function) &&
			!slices.Contains(found, start) {
			found = append(found, start)
		}
	}
	return found
}

// supported are the minor versions whose bytecode is looked for.
var supported = []string{"311", "312", "313", "314", "315"}

// bytecode reads the heads of a source file's .pyc files (PEP 552: magic number, flags, and without
// flags the source's time and size); the one that matches wins, else the newest.
func (c *Code) bytecode(source string, st os.FileInfo) *timeline.Bytecode {
	folder, name := filepath.Split(source)
	stem := strings.TrimSuffix(name, filepath.Ext(name))
	var best *timeline.Bytecode
	for _, version := range supported {
		file, err := c.files.Open(fmt.Sprintf("%s__pycache__/%s.cpython-%s.pyc", folder, stem, version))
		if err != nil {
			continue
		}
		var head [16]byte
		_, err = io.ReadFull(file, head[:])
		written, statErr := file.Stat()
		file.Close()
		if err != nil || statErr != nil {
			continue
		}
		found := &timeline.Bytecode{Written: written.ModTime(), Matches: binary.LittleEndian.Uint32(head[4:]) == 0 &&
			binary.LittleEndian.Uint32(head[8:]) == uint32(st.ModTime().Unix()) && binary.LittleEndian.Uint32(head[12:]) == uint32(st.Size())}
		if best == nil || found.Matches && !best.Matches || found.Matches == best.Matches && found.Written.After(best.Written) {
			best = found
		}
	}
	return best
}

// startOf is when a process started; zero when that is not known.
func startOf(pid int) time.Time {
	ticks, alive := procfs.Start(pid)
	var boot unix.Timespec
	if !alive || unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(int64(ticks)*int64(tick) - boot.Nano()))
}

// dynload finds the standard library by its extension modules in a line of a process's memory map.
var dynload = regexp.MustCompile(` (/.*)/(lib(?:64)?/python3\.\d+t?)/lib-dynload/[^/\n]*$`)

// installationOf finds where a process's Python lies: its executable's folder and that by which it was
// called (of a virtual environment), and what it has mapped. Zero where the process has ended.
func installationOf(target timeline.Target) timeline.Installation {
	var i timeline.Installation
	add := func(list *[]string, name string) {
		if name != "" && name != "/" && name != "." && !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	proc := fmt.Sprintf("/proc/%d/", target.PID)
	executable, err := os.Readlink(proc + "exe")
	if err != nil {
		return i
	}
	called := target.Interpreter
	if line, err := os.ReadFile(proc + "cmdline"); err == nil && !filepath.IsAbs(called) {
		called, _, _ = strings.Cut(string(line), "\x00")
	}
	for _, program := range []string{called, executable} {
		if filepath.IsAbs(program) && filepath.Base(filepath.Dir(program)) == "bin" {
			add(&i.Prefixes, filepath.Dir(filepath.Dir(program)))
		}
	}
	if maps, err := os.ReadFile(proc + "maps"); err == nil {
		for line := range bytes.Lines(maps) {
			if !bytes.Contains(line, []byte("/lib-dynload/")) { // the expression alone takes some milliseconds
				continue
			}
			if found := dynload.FindSubmatch(bytes.TrimSuffix(line, []byte("\n"))); found != nil {
				add(&i.Prefixes, string(found[1]))
				add(&i.Standard, filepath.Join(string(found[1]), string(found[2])))
				break
			}
		}
	}
	return i
}
