package scene

import (
	"regexp"
	"testing"
)

func TestPathData(t *testing.T) {
	var p pathData
	p.moveTo(10, 20.04)
	p.lineTo(10.55, 20)
	p.lineTo(10.55, 19.5)
	p.lineTo(9, 18)
	p.lineTo(9, 18)
	p.moveTo(100, 0)
	if got, want := p.String(), "M10 20h.6v-.5l-1.6 -1.5m91 -18"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if bad := regexp.MustCompile(`[^MmhvlHVL0-9. -]`).FindString(p.String()); bad != "" {
		t.Errorf("%q in path data", bad)
	}
}
