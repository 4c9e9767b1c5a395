package straggler

import (
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// Collective is what a rank does together with others. Its name is torch's function, as
// all_reduce, barrier, send.
type Collective string

const (
	None Collective = ""
	// SetUp is the making of process groups, and the first comparison of the models.
	SetUp Collective = "set-up"
	// TearDown is their end.
	TearDown Collective = "tear-down"
	// Backward is waiting within backward(), where DistributedDataParallel reduces the
	// gradients: on the CPU only, a GPU is not waited for there.
	Backward Collective = "backward"
)

// Of returns the collective that a function of a library is, None for most.
func Of(file origin.Known, function string) Collective {
	switch means := file.Means(function); {
	case means&origin.RunsBackward != 0:
		return Backward
	case means&origin.TearsDown != 0:
		return TearDown
	case means&origin.SetsUp != 0:
		return SetUp
	case means&origin.Collective != 0 && !strings.HasSuffix(function, "_list"): // it calls the collective
		return Collective(file.Listed(origin.Collective, function))
	}
	return None
}
