package saved

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/omni-perf/omni-perf/sidecar/show/glance"
)

// areNotebooks reports whether files have the cells of a notebook; it is an error if only some of them do. Of a file that is no
// report either the error is that: it is not another kind of document, it is none.
func areNotebooks(files []string) (bool, error) {
	found := ""
	other := ""
	for _, file := range files {
		if isNotebook(file) {
			found = file
		} else {
			other = file
		}
	}
	if found != "" && other != "" {
		if _, err := Read(other); err != nil {
			return false, err
		}
		return false, fmt.Errorf("the cells of a notebook are in %s, and those of none in %s: like is compared with like", found, other)
	}
	return found != "", nil
}

func isNotebook(file string) bool {
	if file == Stdio {
		return false
	}
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	begin := make([]byte, glance.KindBytes)
	n, _ := io.ReadFull(f, begin)
	return glance.Begins(begin[:n])
}

func readNotebooks(files []string) (list []*glance.Document, err error) {
	for _, file := range files {
		f, err := open(file)
		if err != nil {
			return nil, err
		}
		d, err := glance.Read(f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("cannot take the cells from %s: %w", file, err)
		}
		list = append(list, d)
	}
	return list, nil
}

var errNoPage = errors.New("--html draws the comparison of two recordings; that of two notebooks is shown here, and --json writes it")

// notebooks compares the cells of a notebook that was executed before and after a change.
func (q Comparison) notebooks() (*glance.Difference, error) {
	before, err := readNotebooks(q.Before)
	if err != nil {
		return nil, err
	}
	after, err := readNotebooks(q.After)
	if err != nil {
		return nil, err
	}
	return glance.Compare(before, after)
}
