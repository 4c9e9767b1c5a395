package pystack

import (
	"encoding/json"
	"os/exec"
	"slices"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// opcodesByName prints the opcodes of an interpreter, specialized and instrumented ones too. Up to 3.12
// the specialized ones have no table: they take the numbers that are free, in order.
const opcodesByName = `
import json, opcode
names = dict(opcode.opmap)
try:
    import _opcode_metadata
    names.update(_opcode_metadata._specialized_opmap)
except ImportError:
    number = 1
    for name in opcode._specialized_instructions:
        while number in names.values():
            number += 1
        names[name] = number
print(json.dumps(names))
`

// enterPython are the instructions from which each version enters a Python function without C code in
// between, as far as they are known from their opcode alone.
var enterPython = map[string][]string{
	"3.11": {"CALL", "CALL_ADAPTIVE", "CALL_PY_EXACT_ARGS", "CALL_PY_WITH_DEFAULTS"},
	"3.12": {"CALL", "INSTRUMENTED_CALL", "CALL_PY_EXACT_ARGS", "CALL_PY_WITH_DEFAULTS", "CALL_BOUND_METHOD_EXACT_ARGS"},
	"3.13": {"CALL", "CALL_KW", "INSTRUMENTED_CALL", "INSTRUMENTED_CALL_KW", "CALL_PY_EXACT_ARGS", "CALL_PY_GENERAL",
		"CALL_BOUND_METHOD_EXACT_ARGS", "CALL_BOUND_METHOD_GENERAL"},
	"3.14": {"CALL", "CALL_KW", "INSTRUMENTED_CALL", "INSTRUMENTED_CALL_KW", "CALL_PY_EXACT_ARGS", "CALL_PY_GENERAL",
		"CALL_BOUND_METHOD_EXACT_ARGS", "CALL_BOUND_METHOD_GENERAL", "CALL_KW_PY", "CALL_KW_BOUND_METHOD"},
}

func TestOpcodes(t *testing.T) {
	enterPython["3.15"] = enterPython["3.14"]
	truth.EachInterpreter(t, func(t *testing.T, python truth.Interpreter) {
		out, err := exec.Command(python.Path, "-I", "-c", opcodesByName).Output()
		if err != nil {
			t.Fatal(err)
		}
		var numbers map[string]int
		if err := json.Unmarshal(out, &numbers); err != nil {
			t.Fatal(err)
		}
		table := attachTo(t, truth.Start(t, python, truth.Work)).l.Opcodes
		same := func(what, got string, names []string) {
			t.Helper()
			var want []byte
			for _, name := range names {
				number, ok := numbers[name]
				if !ok {
					t.Errorf("there is no %s", name)
				}
				want = append(want, byte(number))
			}
			slices.Sort(want)
			if have := slices.Sorted(slices.Values([]byte(got))); !slices.Equal(have, want) {
				t.Errorf("%s: %v, the interpreter has %v", what, have, want)
			}
		}
		same("calls", table.Calls, enterPython[python.Minor])
		if table.Returns != "" {
			same("returns", table.Returns, []string{"RETURN_VALUE", "RETURN_GENERATOR", "INSTRUMENTED_RETURN_VALUE"})
		}
	})
}
