package kineto

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// repeated is a text many times.
type repeated struct {
	text string
	left int // bytes
	at   int
}

func (r *repeated) Read(p []byte) (n int, err error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	for n < len(p) && r.left > 0 {
		c := copy(p[n:min(len(p), n+r.left)], r.text[r.at:])
		n += c
		r.left -= c
		if r.at += c; r.at == len(r.text) {
			r.at = 0
		}
	}
	return n, nil
}

func times(text string, n int) io.Reader {
	return &repeated{text: strings.Repeat(text, 1+(1<<16)/len(text)), left: n * len(text)}
}

// joined is a text of strings and readers.
func joined(parts ...any) io.Reader {
	var all []io.Reader
	for _, p := range parts {
		if text, ok := p.(string); ok {
			p = strings.NewReader(text)
		}
		all = append(all, p.(io.Reader))
	}
	return io.MultiReader(all...)
}

var oneKernel = fmt.Sprintf(kernelEvent, 1, 2, 3)

// large are traces of which little may be kept. Those with kernels are read to the end;
// of the others reading stops. says is part of the one warning.
var large = map[string]struct {
	text    func() io.Reader
	kernels int
	says    string
}{
	"blanks":   {func() io.Reader { return times(" \n", 1.5e9) }, 0, "begins with more than 1,048,576 blanks"},
	"zeros":    {func() io.Reader { return times("\x00", 3e9) }, 0, "begins with more than 1,048,576 blanks"},
	"nothings": {func() io.Reader { return joined("[", times("{},", 3e8), "{}]") }, 0, "more than 1,048,576 elements of traceEvents are no events"},
	"nulls":    {func() io.Reader { return joined("[", times("null,", 2e8), "{}]") }, 0, "more than 1,048,576 elements of traceEvents are no events"},
	"begins of events": {func() io.Reader {
		return joined(`{"traceEvents":[`, times(`{"ph":[`, 1e8))
	}, 0, "an event of more than 8,388,608 bytes"},

	"an unknown string": {func() io.Reader {
		return joined(`{"new":"`, times("x", 1e9), `","traceEvents":[`, oneKernel, "]}")
	}, 1, ""},
	"an unknown list": {func() io.Reader {
		return joined(`{"new":[`, times("0,", 2.5e8), `0],"traceEvents":[`, oneKernel, "]}")
	}, 1, ""},
	"one that is known": {func() io.Reader {
		return joined(`{"host_name":"`, times("x", 1e9), `","traceEvents":[`, oneKernel, "]}")
	}, 1, `the value of "host_name" has more than 8,388,608 bytes`},
	"a long value in an event": {func() io.Reader {
		return joined(`{"traceEvents":[{"ph":"X","args":{"new":"`, times("x", 1e9), `"},"name":"x"},`, oneKernel, "]}")
	}, 1, "an event of more than 8,388,608 bytes"},
	"a long list in an event": {func() io.Reader {
		return joined(`{"traceEvents":[`, oneKernel, `,{"ph":"X","args":{"new":[`, times("0,", 2.5e8), `0]},"name":"x"},`, oneKernel, "]}")
	}, 2, "an event of more than 8,388,608 bytes"},
}

// TestLargeTrace is the process in which TestLargeTraces reads one.
func TestLargeTrace(t *testing.T) {
	c, ok := large[os.Getenv("OMNI_PERF_LARGE")]
	if !ok {
		t.Skip("part of TestLargeTraces")
	}
	cpu := func() time.Duration {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			t.Fatal(err)
		}
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	before := cpu()
	trace, warnings, err := Read(context.Background(), c.text(), "large", Options{})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("cpu %d kernels %d\n", cpu()-before, trace.Device.Len())
	for _, w := range warnings {
		fmt.Printf("warning: %s\n", w)
	}
}

// Whatever the size of a trace, what is not kept of it takes 100 MB at most: reading one
// that is none stops within a second of CPU time, and what nobody asks for is passed over
// at 200 MB in a second.
func TestLargeTraces(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector takes memory and time of its own")
	}
	for name, c := range large {
		t.Run(name, func(t *testing.T) {
			child := exec.Command(os.Args[0], "-test.run", "^TestLargeTrace$")
			child.Env = append(os.Environ(), "OMNI_PERF_LARGE="+name)
			out, err := child.CombinedOutput()
			var spent time.Duration
			var kernels int
			if _, scan := fmt.Sscanf(string(out), "cpu %d kernels %d", &spent, &kernels); err != nil || scan != nil {
				t.Fatalf("%v, %v\n%s", err, scan, out)
			}
			peak := child.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10
			t.Logf("%d MB, %v", peak, spent.Round(time.Millisecond))
			most := time.Second
			if c.kernels > 0 {
				most = 5 * time.Second
			}
			if peak > 100 || spent > most {
				t.Errorf("took %d MB and %v, want at most 100 MB and %v", peak, spent, most)
			}
			_, why, warned := strings.Cut(string(out), "warning: ")
			if kernels != c.kernels || warned != (c.says != "") || !strings.Contains(why, c.says) {
				t.Errorf("%d kernels, says %s, want %d, %q", kernels, out, c.kernels, c.says)
			}
		})
	}
}

// docs/torch-traces.md states each limit.
func TestLimitsAreStated(t *testing.T) {
	page, err := os.ReadFile("../../../docs/torch-traces.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int64{maxRecord, maxBlanks, maxEvents, maxForeign} {
		if !strings.Contains(string(page), words.Count(limit)) {
			t.Errorf("%d is not stated", limit)
		}
	}
}
