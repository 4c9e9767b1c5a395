package retry

import "testing"

// failures is a test that only counts what fails in it.
type failures struct {
	testing.TB
	count int
}

func (f *failures) Errorf(string, ...any) { f.count++ }
func (f *failures) Failed() bool          { return f.count > 0 }

func TestAgain(t *testing.T) {
	for _, c := range []struct {
		name             string
		bad              int // attempts that fail before one that does not
		measured, failed int
	}{
		{"at once", 0, 1, 0}, {"at the third", 2, 3, 0}, {"at the last", attempts - 1, attempts, 0}, {"never", 100, attempts, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			outer, measured := &failures{TB: t}, 0
			Again(outer, func(t *Attempt) {
				if measured++; measured <= c.bad {
					t.Fatal("worse than claimed")
					measured = 100 // not reached
				}
			})
			if measured != c.measured || outer.count != c.failed {
				t.Errorf("measured %d times, failed %d times; want %d and %d", measured, outer.count, c.measured, c.failed)
			}
		})
	}
}
