package pytasks

import (
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// churn has tasks that wake every millisecond and make new ones: coroutines are freed and
// their memory is used again all the time. outer_n awaits middle_n awaits inner_n, so that a
// chain of another mixture was never there.
const churn = `
import asyncio
def family(n):
    scope = {"asyncio": asyncio}
    exec(f'''
async def inner_{n}(seconds):
    await asyncio.sleep(seconds)
async def middle_{n}(seconds):
    await inner_{n}(seconds)
async def outer_{n}(seconds):
    await middle_{n}(seconds)
''', scope)
    return scope[f"outer_{n}"]
families = [family(n) for n in range(6)]
async def worker(n):
    while True:
        await families[n % 6](0.001 + n % 7 / 5000)
        task = asyncio.create_task(families[(n + 1) % 6](0.0005), name=f"child of {n}")
        await task
        n += 1
async def main():
    tasks = [asyncio.create_task(worker(n)) for n in range(57)]
    print("READY", flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
`

// Chains of tasks that change all the time show no coroutine that another task's awaits.
func TestChangingChainsAreNeverMixed(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		pid, _ := start(t, python, "-c", churn)
		r := open(t, pid)
		tasks, cut, lost := 0, 0, 0
		for range 300 {
			s, err := r.Read()
			if err != nil && !isTorn(err) {
				t.Fatal(err)
			}
			lost += s.Lost
			for _, task := range s.Tasks {
				tasks++
				if task.Cut {
					cut++
				}
				checkFamily(t, task)
			}
			time.Sleep(time.Millisecond)
		}
		t.Logf("%d tasks, %d cut, %d lost", tasks, cut, lost)
		if tasks < 300*30 {
			t.Errorf("only %d tasks in 300 reads of 58 and more", tasks)
		}
	})
}

// checkFamily checks that a chain's functions are of one family, each at its one line.
func checkFamily(t *testing.T, task Task) {
	t.Helper()
	family, order := "", map[string]int{"worker": 1, "outer": 2, "middle": 3, "inner": 4, "sleep": 5, "main": 1}
	last := 0
	for _, f := range task.Frames {
		kind, number := cutName(f.Code.Function)
		if order[kind] <= last {
			t.Errorf("%s: %s after a frame of level %d", task.Name, f.Code.Function, last)
		}
		last = order[kind]
		if number == "" {
			continue
		}
		if family != "" && number != family {
			t.Errorf("%s: %s in a chain of family %s", task.Name, f.Code.Function, family)
		}
		family = number
	}
}
