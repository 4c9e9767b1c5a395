package chart

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// The viewer's axis has the same ticks over a whole recording (viewer/src/ticks.ts): one file of cases for
// both. Figures have another, package words' TestFiguresOfBothLanguages.
func TestTicksOfTheViewer(t *testing.T) {
	text, err := os.ReadFile("../viewer/testdata/ticks.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases struct{ Ticks [][3]json.RawMessage }
	if err := json.Unmarshal(text, &cases); err != nil || len(cases.Ticks) < 5 {
		t.Fatal(len(cases.Ticks), err)
	}
	for _, c := range cases.Ticks {
		var duration, room float64
		var want, got []string
		for i, into := range []any{&duration, &room, &want} {
			if err := json.Unmarshal(c[i], into); err != nil {
				t.Fatal(err)
			}
		}
		step, label := tickStep(duration, room)
		for i := 0; float64(i)*step <= duration*(1+1e-9); i++ {
			got = append(got, label(float64(i)*step))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v s: got %v, want %v", duration, got, want)
		}
	}
}
