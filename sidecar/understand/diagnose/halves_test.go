package diagnose

import "testing"

// Where two places have about half of a time each, which of them has a sample more is chance.
func TestHalves(t *testing.T) {
	a, b := Place{File: "f", Line: 2}, Place{File: "f", Line: 4}
	for name, c := range map[string]struct {
		account account
		want    bool
	}{
		"two sleeps":            {account{total: 100, at: a, there: 51, nextAt: b, next: 49}, true},
		"all but a tenth":       {account{total: 100, at: a, there: 48, nextAt: b, next: 43}, true},
		"one has more":          {account{total: 100, at: a, there: 60, nextAt: b, next: 40}, false},
		"a third has some, too": {account{total: 100, at: a, there: 40, nextAt: b, next: 38}, false},
		"the other is no line":  {account{total: 100, at: a, there: 51, next: 49}, false},
		"there is no other":     {account{total: 100, at: a, there: 100}, false},
		"the first is no line":  {account{total: 100, there: 51, nextAt: b, next: 49}, false},
	} {
		if got := c.account.halves(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
