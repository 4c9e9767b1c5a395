package program

import "testing"

func TestAPaceIsOneOfTheFiguresAndANumber(t *testing.T) {
	for _, name := range PaceNames() {
		if p, err := ParsePace(name + "=2.5"); err != nil || p.figure.name != name || p.least != 2.5 {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	for _, text := range []string{"", "steps_per_s", "steps_per_s=", "steps_per_s=-1", "steps_per_s=0", "steps_per_s=Inf", "epochs_per_s=1", "=1"} {
		if p, err := ParsePace(text); err == nil {
			t.Errorf("%q is taken as %+v", text, p)
		}
	}
}
