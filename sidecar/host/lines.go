package host

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

const (
	maxSourceFile = 2 << 20 // bytes of a file that is read
	maxSourceLine = 400     // bytes of a line that is kept
	maxKept       = 4 << 20 // bytes of all files together
)

// Lines reads lines of source files as the target sees them: in its mount
// namespace and relative to its working folder. Files are read once. It may be
// used from any goroutine, and after the target has ended as far as files were
// read before.
type Lines struct {
	root, cwd string

	mu    sync.Mutex
	files map[string][]string
	kept  int
}

// NewLines makes the reader for a process.
func NewLines(pid int) *Lines {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	return &Lines{root: filepath.Join(proc, "root"), cwd: filepath.Join(proc, "cwd"), files: make(map[string][]string)}
}

// Line returns a line of a file, counted from 1; empty when it cannot be read.
func (l *Lines) Line(file string, line int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines, known := l.files[file]
	if !known {
		if l.kept > maxKept {
			clear(l.files)
			l.kept = 0
		}
		lines = l.read(file)
		l.files[file] = lines
	}
	if line < 1 || line > len(lines) {
		return ""
	}
	return lines[line-1]
}

func (l *Lines) read(file string) []string {
	if file == "" || strings.HasPrefix(file, "<") || strings.ContainsRune(file, 0) {
		return nil
	}
	path := filepath.Join(l.cwd, file)
	if filepath.IsAbs(file) {
		path = filepath.Join(l.root, file)
	}
	// The name is the program's to choose: only what is a plain file is opened, and
	// a pipe put there meanwhile does not hold us up.
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var lines []string
	in := bufio.NewScanner(io.LimitReader(f, maxSourceFile))
	in.Buffer(nil, maxSourceFile)
	for in.Scan() {
		text := in.Text()
		if len(text) > maxSourceLine {
			text = text[:maxSourceLine]
		}
		lines = append(lines, strings.ToValidUTF8(strings.Clone(text), "�"))
		l.kept += len(text) + 16
	}
	return lines
}
