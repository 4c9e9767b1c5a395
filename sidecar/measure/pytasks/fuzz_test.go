package pytasks

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
	"github.com/omni-perf/omni-perf/sidecar/measure/pystack"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

func isTorn(err error) bool {
	return errors.Is(err, errTorn) || errors.Is(err, cpython.ErrUnmapped)
}

func cutName(function string) (kind, number string) {
	kind, number, _ = strings.Cut(function, "_")
	return kind, number
}

// island is a memory that has some bytes at one address and nothing else.
type island []byte

const islandAt = 1 << 16

func (m island) Read(buf []byte, ranges []cpython.Range) (n int, err error) {
	for _, r := range ranges {
		if r.Addr < islandAt || r.Addr+uint64(r.Len) > islandAt+uint64(len(m)) || r.Addr+uint64(r.Len) < r.Addr {
			return n, nil
		}
		n += copy(buf[n:n+r.Len], m[r.Addr-islandAt:])
	}
	return n, nil
}

// layoutOf is that of the version whose memory pystack has recorded.
func layoutOf(t testing.TB, minor string) *cpython.Layout {
	t.Helper()
	file, err := os.Open("../pystack/testdata/" + minor + ".image")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	image, err := pystack.ReadImage(file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pystack.OpenImage(image)
	if err != nil {
		t.Fatal(err)
	}
	return p.Interpreter().Layout
}

// FuzzRead reads tasks from memory of any contents: it ends, within bounds, and what it
// returns has the form that Snapshot promises.
func FuzzRead(f *testing.F) {
	f.Add(uint8(12), []byte(strings.Repeat("\x00\x00\x01\x00\x00\x00\x00\x00", 512)))
	f.Add(uint8(14), []byte(strings.Repeat("\x40\x00\x01\x00\x00\x00\x00\x00", 512)))
	f.Add(uint8(11), []byte(strings.Repeat("\x00\x01\x01\x00\x00\x00\x00\x00\x28\x00\x01\x00\x00\x00\x00\x00", 300)))
	// A set at 0, whose table is at 64, of a task there, whose class is at 64 as well.
	f.Add(uint8(12), append(append(make([]byte, 40), "\x40\x00\x01\x00\x00\x00\x00\x00"...), strings.Repeat("\x40\x00\x01\x00\x00\x00\x00\x00", 300)...))
	var layouts []*cpython.Layout
	for _, minor := range truth.Minors {
		layouts = append(layouts, layoutOf(f, minor))
	}
	f.Fuzz(func(t *testing.T, minor uint8, data []byte) {
		l := layouts[int(minor)%len(layouts)]
		r := newReader(island(data), l, islandAt, func() (uint64, error) { return islandAt, nil })
		for range 2 {
			s, err := r.Read()
			if err != nil {
				continue
			}
			for i, task := range s.Tasks {
				if task.Awaiter >= len(s.Tasks) || task.Awaiter == i || len(task.Frames) > maxChain || len([]rune(task.Name)) > maxNameSize+1 {
					t.Errorf("task %d of %d: %+v", i, len(s.Tasks), task)
				}
			}
		}
		// What is read of tasks, wherever they are said to be.
		w := &r.work
		w.reset()
		for at := uint64(0); at+8 <= uint64(len(data)) && at < 256; at += 8 {
			w.add(taskWords{coro: cpython.Word(data, at)})
		}
		if r.follow(w) == nil {
			_ = r.confirm(w)
		}
		// Tasks of trio, whose classes are where some say.
		r.none, r.float = islandAt+64, islandAt+72
		for at := uint64(0); at+8 <= uint64(len(data)) && at < 64; at += 8 {
			for i, name := range []string{"coro", "name", "_next_send_fn", "_schedule_points", "_cancel_status", "clock", "offset", "_scope", "_registered_deadline"} {
				r.slots[slot{cpython.Word(data, at), name}] = objectType + 8*uint64(i)
			}
		}
		r.tasks = r.tasks[:0]
		for at := uint64(0); at < 128; at += 32 {
			lost, err := r.trioTasks(islandAt, islandAt+at)
			if err == nil && (lost < 0 || len(r.tasks)+lost > maxTasks) {
				t.Errorf("%d tasks, %d lost", len(r.tasks), lost)
			}
		}
		for _, task := range r.tasks {
			if task.Awaiter != -1 || len(task.Frames) > maxChain || len([]rune(task.Name)) > maxNameSize+1 || task.Wake < 0 {
				t.Errorf("a task of trio is %+v", task)
			}
		}
		r.modules = modules{interp: islandAt, at: map[string]uint64{others[0].module: islandAt, others[1].module: islandAt + 8}}
		r.locals[others[1].name] = islandAt
		for range 2 {
			_ = r.readOthers(&Snapshot{})
		}
		r.found = &found{interp: islandAt, lists: &lists{node: 152, size: 168, interpTasks: 64, runningLoop: 72, tasks: 80}}
		_, _ = r.Read()
	})
}
