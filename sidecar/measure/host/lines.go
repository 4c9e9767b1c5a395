package host

import (
	"bufio"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/omni-perf/omni-perf/sidecar/measure/targetfs"
)

const (
	maxSourceFile = 2 << 20 // bytes of a file that is read
	maxSourceLine = 400     // bytes of a line that is kept
	maxKept       = 4 << 20 // bytes of all files together
)

// Lines reads lines of source files as the target sees them, with its rights: the
// names are the target's. Files are read once. It may be used from any goroutine.
type Lines struct {
	from *targetfs.FS

	mu    sync.Mutex
	files map[string][]string
	kept  int
}

// NewLines makes the reader for a process.
func NewLines(files *targetfs.FS) *Lines {
	return &Lines{from: files, files: make(map[string][]string)}
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

// Text returns a whole file; nil when it cannot be read or is larger than any source.
func (l *Lines) Text(file string) []byte {
	f := l.open(file)
	if f == nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSourceFile+1))
	if err != nil || len(text) > maxSourceFile {
		return nil
	}
	return text
}

func (l *Lines) open(file string) *os.File {
	if file == "" || strings.HasPrefix(file, "<") || strings.ContainsRune(file, 0) {
		return nil
	}
	f, err := l.from.Open(file)
	if err != nil {
		return nil
	}
	return f
}

func (l *Lines) read(file string) []string {
	f := l.open(file)
	if f == nil {
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
