package program

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// deepScripts spend their time at the bottom of a chain of generators or coroutines, in the
// line that ends with "# bottom", and print how long that was.
var deepScripts = []struct {
	name, body string
	depth      int
}{
	{"generators", `
def walk(n):
    if n:
        yield from walk(n - 1)
    else:
        begun = time.monotonic()
        while time.monotonic() < begun + 0.8: pass  # bottom
        print(time.monotonic() - begun)
        yield n

list(walk(DEPTH))
`, 300},
	{"coroutines", `
async def layer(n):
    if n:
        return await layer(n - 1)
    begun = time.monotonic()
    while time.monotonic() < begun + 0.8: pass  # bottom
    print(time.monotonic() - begun)

asyncio.run(layer(DEPTH))
`, 900},
	{"waiting coroutines", `
async def layer(n):
    if n:
        return await layer(n - 1)
    begun = time.monotonic()
    await asyncio.sleep(0.8)  # bottom
    print(time.monotonic() - begun)

asyncio.run(layer(DEPTH))
`, 400},
}

func TestTheLineAtTheBottomOfGeneratorsHasTheTime(t *testing.T) {
	for _, deep := range deepScripts {
		t.Run(deep.name, func(t *testing.T) {
			text := "import asyncio, sys, time\nsys.setrecursionlimit(10_000)\n" + strings.ReplaceAll(deep.body, "DEPTH", strconv.Itoa(deep.depth))
			bottom := 1 + strings.Count(text[:strings.Index(text, "# bottom")], "\n")
			script := write(t, "deep.py", text)
			truth.EachInterpreter(t, func(t *testing.T, python truth.Interpreter) {
				retry.Again(t, func(t *retry.Attempt) { checkBottom(t, python.Path, script, bottom) })
			})
		})
	}
}

// checkBottom runs a script, and compares the time of a line with what the script says.
func checkBottom(t *retry.Attempt, python, script string, bottom int) {
	var out, messages bytes.Buffer
	o, path := options(t, &messages)
	if _, err := Run(context.Background(), realTools(), Script{Interpreter: python, Args: []string{script}, Stdout: &out, Stderr: &messages}, o); err != nil {
		t.Fatal(err)
	}
	want, err := strconv.ParseFloat(strings.TrimSpace(out.String()), 64)
	if err != nil {
		t.Fatalf("%v: %s", err, &messages)
	}
	r := readReport(t, path)
	got := 0.0
	for _, line := range r.Lines {
		if line.Line == bottom && strings.HasSuffix(r.FileName(&line.File), "deep.py") {
			got += float64(line.SelfNS) / 1e9
		}
	}
	if got < 0.8*want || got > 1.2*want {
		t.Errorf("line %d has %.2f s, the script was there for %.2f s", bottom, got, want)
	}
}
