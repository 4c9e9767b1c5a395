package page

import (
	"bufio"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// TestAPlaceThatIsCutKeepsItsLine: a terminal that is too narrow shows the end of a place, the beginning of a name.
func TestAPlaceThatIsCutKeepsItsLine(t *testing.T) {
	const path = "/home/somebody/projects/models/training/train.py:123"
	places := table.New("t", "Places", &table.Column{Name: "place", Kind: table.Text}, &table.Column{Name: "name", Kind: table.Text})
	places.Add(path, path)
	var text strings.Builder
	out := bufio.NewWriter(&text)
	writeTable(out, places, "Places", nil, 5, 60)
	out.Flush()
	for _, want := range []string{"…", "/train.py:123  /home/somebody/"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q does not contain %q", text.String(), want)
		}
	}
}
