package significance

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// Limit is by how much a time may grow; the zero value is no limit.
type Limit struct {
	text  string
	share float64 // of the time before; 0: time counts
	time  time.Duration
}

// Exceeded is the error of somebody who asked for a limit: a sentence that says what is beyond it.
type Exceeded string

func (e Exceeded) Error() string { return string(e) }

// ParseLimit reads "slower=5%" or "slower=200ms".
func ParseLimit(text string) (Limit, error) {
	wrong := errors.New("it takes slower=LIMIT, LIMIT a share such as 5% or a time such as 200ms or 1.5s")
	value, ok := strings.CutPrefix(text, "slower=")
	if !ok {
		return Limit{}, wrong
	}
	if number, isShare := strings.CutSuffix(value, "%"); isShare {
		percent, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(percent >= 0) || math.IsInf(percent, 0) {
			return Limit{}, wrong
		}
		return Limit{text: value, share: percent / 100}, nil
	}
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 {
		return Limit{}, wrong
	}
	return Limit{text: value, time: d}, nil
}

// IsSet reports whether there is a limit.
func (l Limit) IsSet() bool { return l.text != "" }

// String is the limit as it was given, without what it limits.
func (l Limit) String() string { return l.text }

// Exceeded reports whether a change in ns is more than the limit, and beyond noise:
// a difference that may be chance fails nobody's build.
func (l Limit) Exceeded(verdict Verdict, before, change float64) bool {
	if !l.IsSet() || verdict != More {
		return false
	}
	most := float64(l.time)
	if l.time == 0 {
		most = l.share * before
	}
	return change > most
}
