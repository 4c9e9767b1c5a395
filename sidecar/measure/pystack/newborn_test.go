package pystack

import (
	"os/exec"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// newborns starts many threads while others keep the GIL busy, so that each waits between being made and
// running.
const newborns = `
import threading, time

def spin():
    end = time.monotonic() + 60
    while time.monotonic() < end:
        sum(range(20))

for _ in range(2):
    threading.Thread(target=spin, daemon=True).start()
print("ready", flush=True)
end = time.monotonic() + 60
while time.monotonic() < end:
    threads = [threading.Thread(target=int) for _ in range(20)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
`

// TestAThreadHasOneLane: a thread state that was made, but does not run yet, has in CPython 3.11 the id of the
// thread that made it.
func TestAThreadHasOneLane(t *testing.T) {
	eachVersion(t, func(t *testing.T, python truth.Interpreter) {
		cmd := exec.Command(python.Path, "-c", newborns)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		if _, err := out.Read(make([]byte, 6)); err != nil {
			t.Fatal(err)
		}
		pid := cmd.Process.Pid
		p, err := Attach(pid, Options{Wait: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		_, rec, _ := sampleFor(t, p, 2*time.Second, SampleOptions{})
		mains := 0
		for _, th := range rec.Threads {
			if th.NativeID == pid {
				mains++
			}
		}
		if mains != 1 {
			t.Errorf("%d lanes of the main thread among %d", mains, len(rec.Threads))
		}
	})
}
