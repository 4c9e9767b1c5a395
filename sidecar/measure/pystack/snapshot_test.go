package pystack

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// standing is a program whose threads stand still at known places, with names
// that are hard to read.
var standing = truth.Workload{Name: "standing", Source: `
import asyncio, sys, threading, time

def sleeper(event):
    event.wait()

def items():
    yield from inner()

def inner():
    for item in map(lambda n: stop(), [1]):
        yield item

def stop():
    print("READY", flush=True)
    time.sleep(1000)

class Tower:
    def climb(self, n):
        if n:
            return self.climb(n - 1)
        for _ in items():
            pass

async def task(): await below()
async def below(): Tower().climb(900)

class Worker(threading.Thread):
    def __init__(self):
        self.first = "not the name"
        super().__init__(name="wörk er", daemon=True)
    def run(self):
        def 名(): event.wait()
        名.__code__ = 名.__code__.replace(co_filename="\udcff<b>\0")
        名()

event = threading.Event()
threading.Thread(target=sleeper, args=(event,), name="x" * 10_000, daemon=True).start()
Worker().start()
odd = threading.Thread(target=sleeper, args=(event,), name="dict", daemon=True)
odd.__dict__["extra"] = 1
odd.start()
time.sleep(0.1)
if sys.argv[1:2] != ["edges"]:
    sys.setrecursionlimit(3000)
    asyncio.run(task())
`}

func TestSnapshot(t *testing.T) {
	truth.EachInterpreter(t, func(t *testing.T, python truth.Interpreter) {
		p := attachTo(t, truth.Start(t, python, standing))
		var threads []ThreadStack
		var err error
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); { // until it sleeps
			if threads, err = p.Snapshot(); err != nil {
				t.Fatal(err)
			}
			if i := slices.IndexFunc(threads, func(s ThreadStack) bool { return s.Main }); i >= 0 {
				frames := threads[i].Frames
				if leaf := frames[max(len(frames)-1, 0):]; len(leaf) > 0 && leaf[0].Function == "stop" && leaf[0].Line == leaf[0].FirstLine+2 {
					break
				}
			}
			time.Sleep(10 * time.Millisecond)
		}
		if len(threads) != 4 {
			t.Fatalf("got %d threads, want 4", len(threads))
		}
		byName := make(map[string]ThreadStack)
		for _, s := range threads {
			byName[s.Name] = s
			if s.Truncated {
				t.Errorf("thread %.20q stands still, and its stack is cut", s.Name)
			}
		}
		main := byName["MainThread"]
		got := names(main)
		got = slices.Compact(got[slices.Index(got, "task"):])
		want := []string{"task", "below", "Tower.climb", "items", "inner", "inner.<locals>.<lambda>", "stop"}
		if !slices.Equal(got, want) {
			t.Errorf("main thread: got %v, want %v", got, want)
		}
		if n := len(main.Frames); n < 907 {
			t.Errorf("main thread has %d frames, want more than 900", n)
		}
		if leaf := main.Frames[len(main.Frames)-1]; leaf.Line != leaf.FirstLine+2 {
			t.Errorf("leaf at line %d of a function from line %d on, want the third", leaf.Line, leaf.FirstLine)
		}
		worker := byName["wörk er"]
		i := slices.Index(names(worker), "Worker.run.<locals>.名")
		if i < 0 {
			t.Fatalf("thread \"wörk er\" has %v, want 名 in it", names(worker))
		}
		if file := worker.Frames[i].File; file != "\uFFFD<b>\x00" {
			t.Errorf("file name %q, want the surrogate replaced", file)
		}
		if _, ok := byName["dict"]; !ok {
			t.Error("the name of a thread with a dictionary of its own is not found")
		}
		if long, ok := byName[strings.Repeat("x", 1024)+"…"]; !ok || len(long.Frames) == 0 {
			t.Error("the long name is not found, cut")
		}
	})
}

func names(s ThreadStack) []string {
	var out []string
	for _, f := range s.Frames {
		out = append(out, f.Function)
	}
	return out
}
