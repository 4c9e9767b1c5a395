package pystack

import (
	"errors"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
)

// NotebookCell is a cell as IPython's call for it has it.
type NotebookCell struct {
	Text           string // as typed
	ExecutionCount int    // 0: not known
}

// runsCell is the function that IPython runs each cell in, from version 7 to 9 at least, and
// its locals: the text as typed, and an ExecutionResult.
const (
	runsCell   = ".run_cell_async"
	cellText   = "raw_cell"
	cellResult = "result"
)

// maxCellChars bounds the text of a cell that is read.
const maxCellChars = 1 << 20

var errNoCell = errors.New("no notebook cell is on the stack of the main thread")

// NotebookCell reads the outermost cell on the main thread's stack from the locals of
// IPython's call for it. The process is not stopped meanwhile: what is read may be of
// another moment, and the caller checks the text.
func (p *Process) NotebookCell() (NotebookCell, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.findThreads(); err != nil {
		return NotebookCell{}, err
	}
	for _, g := range p.gils {
		for _, t := range g.threads {
			t.unsure = true
			if _, err := p.reader.sample(t, false); err != nil {
				return NotebookCell{}, err
			}
			if p.identify(t); !p.isMain(t) {
				continue
			}
			for i := range t.stack {
				if f := &t.stack[i]; strings.HasSuffix(f.object.Function, runsCell) {
					return p.reader.notebookCell(f)
				}
			}
		}
	}
	return NotebookCell{}, errNoCell
}

func (r *reader) notebookCell(f *frame) (cell NotebookCell, err error) {
	text, err := r.variable(f, cellText)
	if err != nil {
		return cell, err
	}
	if cell.Text, err = r.objects.TextUpTo(text, maxCellChars); err != nil {
		return cell, err
	}
	result, err := r.variable(f, cellResult)
	if err != nil {
		return cell, err
	}
	if count, err := r.objects.Attribute(result, "execution_count"); err == nil { // else the text alone
		cell.ExecutionCount = r.objects.SmallInt(count)
	}
	return cell, nil
}

// variable is local for a variable that inner functions may use, too.
func (r *reader) variable(f *frame, name string) (uint64, error) {
	value, err := r.local(f, name)
	if err == nil && value == 0 {
		err = errNoCell
	}
	if err != nil {
		return 0, err
	}
	return r.objects.Content(value)
}

// local returns the address of the object that a local variable of a frame refers to; 0 for none.
func (r *reader) local(f *frame, name string) (uint64, error) {
	index, ok := f.object.locals[name]
	if !ok {
		var err error
		if index, err = r.objects.Local(f.object.Code, name); err != nil {
			return 0, err
		}
		if f.object.locals == nil {
			f.object.locals = make(map[string]int)
		}
		f.object.locals[name] = index
	}
	if index < 0 {
		return 0, nil
	}
	value, err := cpython.ReadWord(r.mem, f.addr+r.l.Frame.Locals+cpython.WordSize*uint64(index))
	if err != nil {
		return 0, err
	}
	return value &^ r.l.Frame.CodeTag, nil
}
