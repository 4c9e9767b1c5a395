package page

import (
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/show/viewer"
	"github.com/omni-perf/omni-perf/sidecar/traces/snapshot"
)

// remembered is the result of a snapshot with a history of so many allocations, each of a stack of its own.
func remembered(allocations, frames int, name string) *Result {
	s := &snapshot.Snapshot{Stacks: []snapshot.Stack{nil}}
	var events []snapshot.Event
	for i := range allocations {
		var stack snapshot.Stack
		for k := range frames {
			stack = append(stack, &snapshot.Frame{File: "/home/me/" + name + ".py", Function: fmt.Sprint(name, k, "of", i), Line: int64(i)})
		}
		s.Stacks = append(s.Stacks, stack)
		at := int64(1 + i)
		events = append(events, snapshot.Event{Action: snapshot.Alloc, Address: at << 20, Size: 1000 + at, Stack: snapshot.StackID(at), TimeUs: 1e15 + 10*at})
		if i%2 == 0 {
			events = append(events, snapshot.Event{Action: snapshot.FreeCompleted, Address: at << 20, TimeUs: 1e15 + 10*at + 5})
		}
	}
	s.Devices = []snapshot.Device{{Events: events}}
	return &Result{Name: "a.pickle", Snapshot: snapshot.Analyze(s, snapshot.Options{}), Memory: s, Bands: s.LargestBands()}
}

var embedded = regexp.MustCompile(`(?s)<script type="application/json" id="allocations">(.*?)</script>`)

// The page has each allocation with its stack, and a policy that lets its script and style pass and nothing else.
func TestThePageHasSingleAllocations(t *testing.T) {
	text := pageOf(t, remembered(10, 3, "net"))
	found := embedded.FindStringSubmatch(text)
	if found == nil {
		t.Fatal("no allocations")
	}
	var d allocationData
	if err := json.Unmarshal([]byte(found[1]), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Bands) != 10 || len(d.Stacks) != 10 || len(d.Frames) != 30 || !d.Timed || d.Events != 15 || len(d.Total) != len(d.At) {
		t.Errorf("%d bands, %d stacks, %d frames, %d events", len(d.Bands), len(d.Stacks), len(d.Frames), d.Events)
	}
	if place := d.Stacks[3].Place; place != "/home/me/net.py(3): net0of3" {
		t.Errorf("a stack is of %q", place)
	}
	for _, wanted := range []string{viewer.Allow(allocationsScript), viewer.Allow(allocationsStyle()), "device 0: 10 allocations"} {
		if !strings.Contains(html.UnescapeString(text), wanted) {
			t.Errorf("the page is without %s", wanted)
		}
	}
}

// What a snapshot calls its functions ends no script and is no markup.
func TestNamesOfAllocationsAreText(t *testing.T) {
	text := pageOf(t, remembered(3, 2, `</script><script>alert(1)</script><img src=x onerror=alert(2)>`))
	if strings.Contains(text, "<script>alert(1)") || strings.Contains(text, "<img") {
		t.Error("a name is markup")
	}
}

// A page of many allocations with deep stacks of long names is bounded.
func TestAPageOfManyAllocationsIsBounded(t *testing.T) {
	for _, name := range []string{strings.Repeat("long", 80), strings.Repeat("<", 300), strings.Repeat("\"", 300)} {
		if text := pageOf(t, remembered(6000, 60, name)); len(text) > 1_700_000 {
			t.Errorf("%d bytes for names of %.3s", len(text), name)
		}
	}
	r := remembered(6000, 60, strings.Repeat("long", 80))
	text := pageOf(t, r)
	if len(r.Bands.List) != 2000 {
		t.Errorf("%d bands", len(r.Bands.List))
	}
	if !strings.Contains(text, "6,000 allocations; the 2,000 that had most memory for longest one by one") {
		t.Error("it does not say what is summed up")
	}
}

// Without a history there is no such picture, and no script.
func TestWithoutAHistoryNoAllocationsAreShown(t *testing.T) {
	s := &snapshot.Snapshot{Stacks: []snapshot.Stack{nil}}
	r := &Result{Name: "a.pickle", Snapshot: snapshot.Analyze(s, snapshot.Options{}), Memory: s, Bands: s.LargestBands()}
	if text := pageOf(t, r); strings.Contains(text, "Single allocations") || !strings.Contains(text, "script-src &#39;none&#39;") {
		t.Error("there is a script")
	}
}
