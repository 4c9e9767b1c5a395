package pystack

import (
	"errors"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// shell calls a cell as IPython does, with what an inner function uses among its locals.
var shell = truth.Workload{Name: "shell", Source: `
import sys, time

class ExecutionResult:
    def __init__(self, info):
        self.info = info
        self.execution_count = None

class InteractiveShell:
    async def run_cell_async(self, raw_cell, store_history=False):
        result = ExecutionResult(raw_cell)
        execution_count = result.execution_count = 70_001
        def error_before_exec(value):
            result.error_before_exec = value
        exec(raw_cell)
        return result

text = "# für" + " x" * 2000 + "\nprint('READY', flush=True); time.sleep(1000)"
if sys.argv[1:2] != ["edges"]:
    InteractiveShell().run_cell_async(text).send(None)
`}

func TestTheCellThatRunsIsReadFromMemory(t *testing.T) {
	truth.EachInterpreter(t, func(t *testing.T, python truth.Interpreter) {
		p := attachTo(t, truth.Start(t, python, shell))
		var cell NotebookCell
		err := errNoCell
		for end := time.Now().Add(10 * time.Second); errors.Is(err, errNoCell) && time.Now().Before(end); {
			cell, err = p.NotebookCell()
			time.Sleep(10 * time.Millisecond)
		}
		if err != nil || cell.ExecutionCount != 70_001 || len(cell.Text) < 4000 || cell.Text[:6] != "# für" {
			t.Errorf("cell [%d] of %d characters, %v; want [70001] with its text", cell.ExecutionCount, len(cell.Text), err)
		}
	})
}
