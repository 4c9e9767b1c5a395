package profiler

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/gpu"
	"github.com/omni-perf/omni-perf/sidecar/measure/recorder"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// waitingIn is for how long tasks of a process waited with a function among their coroutines, summed over them.
func waitingIn(rec *timeline.Recording, process int, function string) (sum time.Duration) {
	for _, a := range rec.Awaits {
		if a.Process != process {
			continue
		}
		for n := a.Node; n != timeline.RootNode; n = rec.Nodes[n].Parent {
			if rec.Frames[rec.Nodes[n].Frame].Function == function {
				for _, w := range a.Windows {
					sum += w.Waiting.Duration()
				}
				break
			}
		}
	}
	return sum
}

// clockedTasks has loops in child processes, whose tasks note in a file of each process for how long they wait.
const clockedTasks = `
import asyncio, json, multiprocessing, random
async def clocked(seconds):
    begin = time.monotonic()
    await asyncio.sleep(seconds)
    return time.monotonic() - begin
async def crawl(draw, tasks):
    return sum([sum(await asyncio.gather(*(clocked(draw.uniform(0.2, 0.8)) for _ in range(tasks)))) for _ in range(3)])
def work(number):
    time.sleep(0.3)
    took = asyncio.run(crawl(random.Random(number), 5 + 10 * number))
    with open(os.path.join(os.environ["CLOCKS"], str(os.getpid())), "w") as file:
        json.dump(took, file)
`

// The seconds for which tasks wait in a child process are those that they note, in each process its own.
func TestTasksOfChildProcesses(t *testing.T) {
	for name, start := range map[string]string{
		"fork":  `    workers = [multiprocessing.get_context("fork").Process(target=work, args=(n,)) for n in range(3)]`,
		"spawn": `    workers = [multiprocessing.get_context("spawn").Process(target=work, args=(n,)) for n in range(3)]`,
	} {
		t.Run(name, func(t *testing.T) {
			retry.Again(t, func(t *retry.Attempt) {
				clocks := t.TempDir()
				rec := recordScript(t, recorder.ChildrenStacks, clockedTasks+`
if __name__ == "__main__":
`+start+`
    for w in workers: w.start()
    for w in workers: w.join()
`, "CLOCKS="+clocks)
				workers := ofRole(rec, timeline.RoleWorker)
				if len(workers) != 3 {
					t.Fatalf("processes %+v", rec.Processes)
				}
				for _, at := range workers {
					text, err := os.ReadFile(filepath.Join(clocks, fmt.Sprint(rec.Processes[at].PID)))
					if err != nil {
						t.Fatal(err)
					}
					var want float64
					if err := json.Unmarshal(text, &want); err != nil {
						t.Fatal(err)
					}
					got := waitingIn(rec, at, "clocked").Seconds()
					t.Logf("process %d: tasks waited %.3f s, they noted %.3f", at, got, want)
					if math.Abs(got-want) > 0.03*want {
						t.Errorf("process %d: tasks waited %.3f s, they noted %.3f", at, got, want)
					}
				}
				if r := rec.Tasks; r.Reads == 0 || r.Most != 26 {
					t.Errorf("how they were read: %+v", r)
				}
			})
		})
	}
}

// A process that ends in the midst of its awaits ends them; so does one that becomes another program, whose own count.
func TestTasksOfAChildThatEnds(t *testing.T) {
	retry.Again(t, func(t *retry.Attempt) {
		rec := recordScript(t, recorder.ChildrenStacks, `
import asyncio
async def wait(seconds):
    await asyncio.sleep(seconds)
async def before():
    tasks = [asyncio.create_task(wait(60)) for _ in range(4)]
    await asyncio.sleep(60)
killed = os.fork()
if not killed:
    asyncio.run(before())
again = "import asyncio\nasync def after(): await asyncio.sleep(0.5)\nasync def all(): await asyncio.gather(after(), after())\nasyncio.run(all())"
async def become():
    tasks = [asyncio.create_task(wait(60)) for _ in range(4)]
    await asyncio.sleep(0.5)
    os.execv(sys.executable, [sys.executable, "-c", again])
execs = os.fork()
if not execs:
    asyncio.run(become())
time.sleep(0.5)
os.kill(killed, 9)
os.waitpid(killed, 0), os.waitpid(execs, 0)
time.sleep(0.3)
`)
		if len(rec.Processes) != 3 {
			t.Fatalf("processes %+v", rec.Processes)
		}
		for process, want := range map[int]time.Duration{1: 4 * 500 * time.Millisecond, 2: 4 * 500 * time.Millisecond} {
			if got := waitingIn(rec, process, "wait"); got < want*8/10 || got > want*13/10 {
				t.Errorf("tasks of process %d waited %v, want %v", process, got, want)
			}
		}
		if got, want := waitingIn(rec, 2, "after"), time.Second; got < want*8/10 || got > want*11/10 {
			t.Errorf("after exec tasks waited %v, want %v", got, want)
		}
		if got := waitingIn(rec, 0, "wait"); got != 0 {
			t.Errorf("tasks of the target waited %v; it has none", got)
		}
	})
}

// Processes that outlive a recording, as a pool outlives a cell, are read in the next one, too.
func TestTasksOfAChildInTheNextRecording(t *testing.T) {
	retry.Again(t, func(t *retry.Attempt) {
		cmd := exec.Command(truth.OnPath(t), "-c", `
import asyncio, os, sys
async def wait(seconds):
    await asyncio.sleep(seconds)
async def serve():
    while os.getppid() == parent:
        await asyncio.gather(*(wait(0.2) for _ in range(4)))
parent = os.getpid()
if not os.fork():
    asyncio.run(serve())
    os._exit(0)
print("ready", flush=True)
sys.stdin.readline()
`)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			in.Close()
			_ = cmd.Wait()
		}()
		if n, _ := out.Read(make([]byte, 6)); n == 0 {
			t.Fatal("the script said nothing")
		}
		r := Recorder(timeline.Target{PID: cmd.Process.Pid}, timeline.RoleScript, func() *gpu.Driver { return gpu.Open("") })
		defer r.Close()
		for _, id := range []string{"one", "two", "three"} {
			if _, err := r.Begin(recorder.Spec{ID: id, FigureInterval: 50 * time.Millisecond, Children: recorder.ChildrenStacks}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			rec, err := r.End(id, recorder.Ending{})
			if err != nil {
				t.Fatal(err)
			}
			if got := waitingIn(rec, 1, "wait"); got < 3600*time.Millisecond || got > 4200*time.Millisecond {
				t.Errorf("recording %s: tasks waited %v, want nearly 4 s", id, got)
			}
		}
	})
}

// What a process forks within its loop has a copy of the tasks, which wait no more.
func TestTasksOfAChildThatForks(t *testing.T) {
	retry.Again(t, func(t *retry.Attempt) {
		rec := recordScript(t, recorder.ChildrenStacks, `
import asyncio
async def wait(seconds):
    await asyncio.sleep(seconds)
async def main():
    tasks = [asyncio.create_task(wait(0.9)) for _ in range(4)]
    await asyncio.sleep(0.1)
    grandchild = os.fork()
    if not grandchild:
        spin(0.6)
        os._exit(0)
    await asyncio.gather(*tasks)
    os.waitpid(grandchild, 0)
child = os.fork()
if not child:
    asyncio.run(main())
    os._exit(0)
os.waitpid(child, 0)
`)
		if len(rec.Processes) != 3 {
			t.Fatalf("processes %+v", rec.Processes)
		}
		sees(t, rec, 2, "spin", 600*time.Millisecond)
		if got, want := waitingIn(rec, 1, "wait"), 4*900*time.Millisecond; got < want*8/10 || got > want*11/10 {
			t.Errorf("tasks of the child waited %v, want %v", got, want)
		}
		if got := waitingIn(rec, 2, "wait"); got != 0 {
			t.Errorf("tasks of the grandchild waited %v: it has none of its own", got)
		}
	})
}
