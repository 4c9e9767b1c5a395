package program

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/show/glance"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// journal keeps the page of a kernel's cells, if the results lie in a folder. One goroutine.
type journal struct {
	options Options
	begun   bool // the page is written
	warned  bool // that the page cannot be written
}

func newJournal(o Options, kernel string, pid int) *journal {
	j := &journal{options: o}
	if o.Folder != nil {
		o.Folder.index = glance.Watched{Kernel: kernel, PID: pid, Began: time.Now(), Watching: true}
	}
	return j
}

// close writes the page as of a kernel that is not watched any more.
func (j *journal) close() {
	if !j.begun {
		return // it never was; an older page stays
	}
	f := j.options.Folder
	f.index.Watching = false
	for i := range f.index.Cells {
		f.index.Cells[i].Running = false
	}
	j.write()
}

// begin writes the page, of a kernel that answers.
func (j *journal) begin() {
	if j.options.Folder != nil {
		j.write()
	}
}

// process reports that the kernel has another process.
func (j *journal) process(pid int) {
	if j.options.Folder != nil {
		j.options.Folder.index.PID = pid
	}
}

// add adds a cell that begins, and returns its row.
func (j *journal) add(restarts int, w *watched) (row int) {
	f := j.options.Folder
	if f == nil {
		return 0
	}
	f.index.Cells = append(f.index.Cells, glance.WatchedCell{
		Cell:    glance.Cell{Number: w.cell.ExecutionCount, Code: glance.FirstLine(w.cell.Text)},
		Process: restarts + 1, Began: w.began, Already: w.already, Running: true,
	})
	j.write()
	return len(f.index.Cells) - 1
}

// name takes over the number and the text of a cell that began without them.
func (j *journal) name(w *watched) {
	f := j.options.Folder
	if f == nil {
		return
	}
	c := &f.index.Cells[w.row]
	c.Number, c.Code = w.cell.ExecutionCount, glance.FirstLine(w.cell.Text)
	j.write()
}

// update takes over a cell's report, nil if there is none, and which of its files were written.
func (j *journal) update(w *watched, r *report.View, files []File, written []string, trouble error, running bool) {
	f := j.options.Folder
	if f == nil {
		return
	}
	c := &f.index.Cells[w.row]
	c.Running, c.Place, c.Trouble = running, "", ""
	if r != nil {
		c.SetReport(r)
		if o := r.Target().Cell.Outcome; o != report.OutcomeOK && o != report.OutcomeError {
			c.Place, _ = r.LastPlace()
		}
	}
	if trouble != nil {
		c.Trouble = trouble.Error()
	}
	c.Results = nil
	for _, file := range files {
		if slices.Contains(written, file.Path) {
			c.Results = append(c.Results, glance.Result{Name: file.Format.Name, Path: filepath.Base(file.Path)})
		}
	}
	pagesFirst := func(r glance.Result) int {
		if r.Name == "html" {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(c.Results, func(a, b glance.Result) int { return pagesFirst(a) - pagesFirst(b) })
	j.write()
}

func (j *journal) write() {
	j.begun = true
	if err := j.options.Folder.write(); err != nil && !j.warned {
		j.warned = true
		fmt.Fprintf(j.options.Messages, "omni-perf: the page of the cells: %v\n", err)
	}
}
