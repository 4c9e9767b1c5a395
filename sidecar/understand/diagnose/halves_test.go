package diagnose

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// Where two places have about half of a time each, which of them has a sample more is chance.
func TestHalves(t *testing.T) {
	a, b := activity.Place{File: "f", Line: 2}, activity.Place{File: "f", Line: 4}
	for name, c := range map[string]struct {
		account activity.Account
		want    bool
	}{
		"two sleeps":            {activity.Account{Total: 100, Place: a, There: 51, NextPlace: b, Next: 49}, true},
		"all but a tenth":       {activity.Account{Total: 100, Place: a, There: 48, NextPlace: b, Next: 43}, true},
		"one has more":          {activity.Account{Total: 100, Place: a, There: 60, NextPlace: b, Next: 40}, false},
		"a third has some, too": {activity.Account{Total: 100, Place: a, There: 40, NextPlace: b, Next: 38}, false},
		"the other is no line":  {activity.Account{Total: 100, Place: a, There: 51, Next: 49}, false},
		"there is no other":     {activity.Account{Total: 100, Place: a, There: 100}, false},
		"the first is no line":  {activity.Account{Total: 100, There: 51, NextPlace: b, Next: 49}, false},
	} {
		if got := c.account.Halves(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
