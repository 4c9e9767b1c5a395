package pystack

import (
	"errors"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
)

var errNoName = errors.New("no name to be found")

// threadName returns what threading calls a thread: the attribute _name of the
// Thread object, which is the first local of the thread's first frame,
// Thread._bootstrap.
func (r *reader) threadName(t *thread) (string, error) {
	if len(t.stack) == 0 {
		return "", errNoName
	}
	root := &t.stack[0]
	if root.object.Function != "Thread._bootstrap" || !strings.HasSuffix(root.object.File, "threading.py") {
		return "", errNoName
	}
	object, err := cpython.ReadWord(r.mem, root.addr+r.l.Frame.Locals)
	if err != nil {
		return "", err
	}
	name, err := r.objects.Attribute(object&^r.l.Frame.CodeTag, "_name")
	if err != nil {
		return "", err
	}
	return r.objects.Text(name)
}
