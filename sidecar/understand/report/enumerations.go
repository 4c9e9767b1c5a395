package report

import (
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Enumerations are the ids of what columns name by small integers.
type Enumerations struct {
	State []string `json:"state"`
	Code  []string `json:"code"`
}

func enumerations() Enumerations {
	return Enumerations{State: slices.Clone(stateIDs), Code: slices.Clone(codeIDs)}
}

// State is what a thread was doing.
type State uint8

// The states.
const (
	StatePython State = iota
	StateNative
	StateWaiting
	StateIO
	StateGIL
	StateOff
	StateUnknown
	NumStates = int(StateUnknown) + 1
)

var stateIDs = []string{"python", "native", "waiting", "io", "gil", "off", "unknown"}

// String returns the state's id.
func (s State) String() string { return stateIDs[min(int(s), len(stateIDs)-1)] }

// Computes recognises the states in which a thread had a CPU.
func (s State) Computes() bool { return s == StatePython || s == StateNative }

// Idle recognises the states in which a thread did nothing that anybody knows of.
func (s State) Idle() bool { return s == StateWaiting || s == StateOff || s == StateUnknown }

func stateOf(s timeline.State) State { return State(min(int(s), NumStates-1)) }

// Code is whose code a function is, and of installed code what it does; it is also
// its colour.
type Code uint8

// The kinds of code.
const (
	CodeCell      Code = iota // typed into the notebook, or the script itself
	CodeUser                  // the user's own modules
	CodeData                  // data loading: torch.utils.data, datasets, tf.data …
	CodeFramework             // torch, numpy, sklearn, pandas, transformers …
	CodeDevice                // calls that drive a GPU: cuda, triton, cudnn
	CodeIO                    // files, sockets, databases, serialisation
	CodePicture               // plots and pictures: matplotlib, plotly, PIL …
	CodeOther                 // the standard library and other packages
)

var codeIDs = []string{"cell", "user", "data", "framework", "device", "io", "picture", "other"}

// String returns the id of the kind of code.
func (c Code) String() string { return codeIDs[min(int(c), len(codeIDs)-1)] }

// Own recognises the code that the user wrote and can change.
func (c Code) Own() bool { return c == CodeCell || c == CodeUser }

// translation is the index in ours of each id of a document's enumeration; what is
// not known here is other.
func translation(ids, ours []string, other int) []int {
	places := make([]int, len(ids))
	for i, id := range ids {
		if places[i] = slices.Index(ours, id); places[i] < 0 {
			places[i] = other
		}
	}
	return places
}

// StateTimes are nanoseconds by state, in the order of Enumerations.State.
type StateTimes []int64

// Sum is the time in all states.
func (t StateTimes) Sum() int64 { return t.Of(func(State) bool { return true }) }

// Plus returns the sums of two, which it leaves as they are.
func (t StateTimes) Plus(o StateTimes) StateTimes {
	sum := make(StateTimes, max(len(t), len(o)))
	copy(sum, t)
	for s, d := range o {
		sum[s] += d
	}
	return sum
}

// Of is the time in states of a kind.
func (t StateTimes) Of(kind func(State) bool) (sum int64) {
	for s, d := range t {
		if kind(State(s)) {
			sum += d
		}
	}
	return sum
}
