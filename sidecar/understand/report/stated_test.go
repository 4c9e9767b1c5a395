package report

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// docs/report.md states each limit.
func TestLimitsAreStated(t *testing.T) {
	page, err := os.ReadFile("../../../docs/report.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## What a report may have\n")
	section, _, _ = strings.Cut(section, "\n## ")
	limits := []int{maxBlanks, maxString, maxScalar, maxText, maxDepth, maxElements, maxNumbers}
	for name, most := range maxElementsOf {
		limits = append(limits, most)
		if !strings.Contains(section, "`"+name+"`") {
			t.Errorf("nothing is stated of %s", name)
		}
	}
	slices.Sort(limits)
	for _, limit := range slices.Compact(limits) {
		if !strings.Contains(section, " "+words.Count(int64(limit))+" ") {
			t.Errorf("%d is not stated", limit)
		}
	}
}
