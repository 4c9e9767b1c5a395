package report

import (
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// code is whose code a frame is, and of installed code what it does.
func (n *names) code(f timeline.Frame) Code {
	from := n.origins.Of(f.File)
	if f.Phase == timeline.PhaseFigures && !from.Own() {
		return CodePicture
	}
	return codeOf(from, n.origins.Known(f.File))
}

// CodeByName is the code of a file of which only the name is known, as in the traces of
// other tools.
func CodeByName(file string) Code { return codeOf(origin.ByName(file), origin.KnownByName(file)) }

func codeOf(from origin.Origin, known origin.Known) Code {
	switch {
	case from.Owner == origin.Cell, from.Owner == origin.Script:
		return CodeCell
	case from.Own():
		return CodeUser
	}
	return kindCodes[known.Kind()]
}

var kindCodes = [...]Code{
	origin.Other: CodeOther, origin.Framework: CodeFramework, origin.Data: CodeData, origin.Picture: CodePicture,
	origin.Device: CodeDevice, origin.IO: CodeIO,
}
