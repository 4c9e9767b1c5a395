package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// The viewer says figures and times in the same words (viewer/src/words.ts and ticks.ts): one file of
// cases for both.
func TestWordsOfTheViewer(t *testing.T) {
	text, err := os.ReadFile("../viewer/testdata/words.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases map[string][][]any
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	for kind, list := range cases {
		for _, c := range list {
			v, want := c[0].(float64), c[len(c)-1]
			var got any
			switch kind {
			case "seconds":
				got = words.Seconds(v)
			case "percent":
				got = words.Percent(v)
			case "figure":
				got = words.Quantity(v, c[1].(string))
			case "ticks":
				step, label := tickStep(v, c[1].(float64))
				labels := []any{}
				for i := 0; float64(i)*step <= v*(1+1e-9); i++ {
					labels = append(labels, label(float64(i)*step))
				}
				got = labels
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s %v: got %v, want %v", kind, c[:len(c)-1], got, want)
			}
		}
	}
}
