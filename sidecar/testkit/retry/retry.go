// Package retry is for tests of what holds of real programs in real time, on machines
// that other work shares.
package retry

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// attempts is how often a measurement is made at most.
const attempts = 6

// Again makes a measurement until it does not fail. That suits claims that other work
// on the machine can only make look worse: the best attempt is judged then, and what
// is not true fails each of them. What must never happen is said to the test itself,
// or counted over all attempts.
func Again(t testing.TB, measure func(t *Attempt)) {
	t.Helper()
	for n := 1; ; n++ {
		a := &Attempt{TB: t}
		a.run(measure)
		switch {
		case len(a.wrong) == 0 || t.Failed():
			return
		case n == attempts:
			t.Errorf("%d times of %d: %s", n, attempts, strings.Join(a.wrong, "\n"))
			return
		}
		t.Logf("attempt %d: %s", n, strings.Join(a.wrong, "\n"))
		time.Sleep(time.Duration(n) * 100 * time.Millisecond) // for other work to end
	}
}

// An Attempt is the test as one measurement has it: what fails in it fails the test
// only if it is the last. One goroutine at a time.
type Attempt struct {
	testing.TB
	wrong []string
}

type endOfAttempt struct{}

func (a *Attempt) run(measure func(t *Attempt)) {
	defer func() {
		if p := recover(); p != nil && p != (endOfAttempt{}) {
			panic(p)
		}
	}()
	measure(a)
}

func (a *Attempt) Error(args ...any) { a.Errorf("%s", fmt.Sprint(args...)) }
func (a *Attempt) Errorf(format string, args ...any) {
	a.wrong = append(a.wrong, fmt.Sprintf(format, args...))
}
func (a *Attempt) Fail()        { a.Errorf("failed") }
func (a *Attempt) Failed() bool { return len(a.wrong) > 0 || a.TB.Failed() }

func (a *Attempt) Fatal(args ...any) { a.Fatalf("%s", fmt.Sprint(args...)) }
func (a *Attempt) Fatalf(format string, args ...any) {
	a.Errorf(format, args...)
	panic(endOfAttempt{})
}
func (a *Attempt) FailNow() { a.Fatalf("failed") }
