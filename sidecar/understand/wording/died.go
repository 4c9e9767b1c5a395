package wording

import (
	"fmt"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Died is how a kernel, or a program, ended by itself. Bytes are 0 where they are not known.
type Died struct {
	Program string // its name; empty: it is a kernel, and ended in a cell
	Watched bool   // the program was watched from some time on
	Exit    *int   // its exit code, or 128 and the signal; nil: not known
	Signal  int    // 0: none, or not known
	Cell    int    // that was running; 0: not known
	IntoS   float64
	Place   string  // the line that it was seen in last; or empty
	SeenS   float64 // how long before its end that was; 0: not known
	Hint    bool    // of how Python shows the line of a crash, is wanted

	Resident          int64 // of the kernel's process, when it was seen for the last time
	Group, GroupLimit int64 // what its control group used and may use
	Available         int64 // of the machine's memory, when it had ended
	Machine           int64
	GPU, Xid          int   // the last error that a GPU's driver reported before, and of which GPU; 0: none
	GroupKills, Kills int64 // processes that the out-of-memory killer ended while the cell ran: of the group, of the machine
}

const killed = 9

// Sentence is the death in a line.
func (d Died) Sentence() string {
	who, when := "The kernel", " into a cell"
	switch {
	case d.Program != "" && d.Watched:
		who, when = words.Clean(d.Program, words.MaxName), " into the recording"
	case d.Program != "":
		who, when = words.Clean(d.Program, words.MaxName), " after its start"
	case d.Cell > 0:
		when = fmt.Sprintf(" into cell [%d]", d.Cell)
	}
	text := who + " died " + d.how() + ", " + words.Seconds(d.IntoS) + when
	if d.Place != "" {
		text += ", " + lastIn(d.Place, d.SeenS)
	}
	text += "."
	if d.Hint && diagnose.Crash(d.Signal) {
		text += " With -X faulthandler Python prints the line that it crashed in."
	}
	if d.Xid > 0 {
		text += fmt.Sprintf(" GPU %d had reported %s.", d.GPU, Xid(d.Xid))
	}
	if m := d.Memory(); m != "" {
		text += " " + m
	}
	return text
}

// lastIn says in which line a process was seen last, and how long before its end: what ended it may be the next one.
func lastIn(place string, seenS float64) string {
	if seenS > 0 {
		return "last seen " + words.Seconds(seenS) + " before in " + place
	}
	return "last seen in " + place
}

func (d Died) how() string {
	switch {
	case d.Signal != 0:
		return "by " + Signal(d.Signal)
	case d.Exit != nil:
		return fmt.Sprintf("with exit code %d", *d.Exit)
	}
	return "by an unknown signal or exit code"
}

// Memory says what of the memory was used, and whether the out-of-memory killer ended something meanwhile: whom, it
// does not say.
func (d Died) Memory() string {
	var parts []string
	if d.Resident > 0 {
		text := "It had " + words.Quantity(float64(d.Resident), "B") + " resident"
		switch {
		case d.GroupLimit > 0 && (d.Machine == 0 || d.GroupLimit < d.Machine):
			text += ", of " + words.Quantity(float64(d.GroupLimit), "B") + " that its control group may use"
		case d.Machine > 0:
			text += ", of the machine's " + words.Quantity(float64(d.Machine), "B")
		}
		parts = append(parts, text+".")
	}
	n, whose := d.GroupKills, "of its control group"
	if n <= 0 {
		n, whose = d.Kills, "of the machine"
	}
	if n > 0 {
		text := "The out-of-memory killer ended " + words.Plural(int(n), "process", "processes") + " " + whose + " meanwhile"
		if d.Signal == killed {
			text += ", probably this one"
		}
		parts = append(parts, text+".")
	}
	return strings.Join(parts, " ")
}
