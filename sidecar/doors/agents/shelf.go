package agents

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// shelf reads reports, and keeps the last ones: a client asks several things of one.
type shelf struct {
	mu   sync.Mutex
	kept []kept // the last used first
}

type kept struct {
	path    string
	size    int64
	changed time.Time
	view    *report.View
}

func newShelf() *shelf { return &shelf{} }

const maxKept = 4

// read reads a report, if it is not known as it is now.
func (s *shelf) read(path string) (*report.View, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if path == "" {
		return nil, fmt.Errorf("name a recording; recordings lists them")
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", path)
	}
	at := slices.IndexFunc(s.kept, func(k kept) bool {
		return k.path == path && k.size == info.Size() && k.changed.Equal(info.ModTime())
	})
	if at >= 0 {
		found := s.kept[at]
		s.kept = slices.Insert(slices.Delete(s.kept, at, at+1), 0, found)
		return found.view, nil
	}
	view, err := open(path)
	if err != nil {
		return nil, err
	}
	s.kept = slices.Insert(s.kept, 0, kept{path, info.Size(), info.ModTime(), view})
	s.kept = s.kept[:min(len(s.kept), maxKept)]
	return view, nil
}

func open(path string) (*report.View, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	v, err := report.ReadFrom(f)
	if err != nil {
		return nil, fmt.Errorf("cannot take the recording from %s: %w", path, err)
	}
	return v, nil
}

// recording is a report in a folder.
type recording struct {
	file    string
	changed time.Time
	view    *report.View
}

// maxListed is of how many recordings the headline is read.
const maxListed = 12

// list finds the reports of a folder, the newest first, and how many more there are.
func (s *shelf) list(folder string) (found []recording, more int, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		if info, err := e.Info(); err == nil && isReport(path, info) {
			found = append(found, recording{file: path, changed: info.ModTime()})
		}
	}
	slices.SortStableFunc(found, func(a, b recording) int { return b.changed.Compare(a.changed) })
	if len(found) > maxListed {
		found, more = found[:maxListed], len(found)-maxListed
	}
	readable := found[:0]
	for _, r := range found {
		if r.view, err = s.read(r.file); err == nil {
			readable = append(readable, r)
		}
	}
	return readable, more, nil
}

// isReport recognises a report by its first property.
func isReport(path string, info fs.FileInfo) bool {
	if !info.Mode().IsRegular() || !strings.HasSuffix(path, ".json") && !strings.HasSuffix(path, ".json.gz") {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	in := bufio.NewReader(f)
	if magic, _ := in.Peek(2); string(magic) == "\x1f\x8b" {
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return false
		}
		in = bufio.NewReader(unpacked)
	}
	head := make([]byte, 64)
	n, _ := io.ReadFull(in, head)
	compact := strings.Join(strings.Fields(string(head[:n])), "")
	return strings.HasPrefix(compact, `{"document":"`+report.Kind+`"`)
}
