package report

// KernelLane is what one stream of one GPU ran, where a trace recorded it:
// columns of equal length sorted by start; the blocks do not overlap.
type KernelLane struct {
	Device int   `json:"device"`
	Stream int64 `json:"stream"` // as in the trace
	// ResolutionS is 0 when every event has a block of its own; else events
	// closer together than it were joined, and Count tells how many.
	ResolutionS float64   `json:"resolution_s"`
	StartS      []float64 `json:"start_s"`
	EndS        []float64 `json:"end_s"`
	Name        []int     `json:"name"` // index into Names; the longest of joined events
	Count       []int     `json:"count"`
	Names       []string  `json:"names"`
}

// kernels makes given lanes fit for the document; the given ones stay as they are.
func kernels(lanes []KernelLane) []KernelLane {
	var out []KernelLane
	for _, l := range lanes {
		names := make([]string, len(l.Names))
		for i, name := range l.Names {
			names[i] = clean(name)
		}
		l.Names = names
		l.StartS, l.EndS = notNil(l.StartS), notNil(l.EndS)
		l.Name, l.Count = notNil(l.Name), notNil(l.Count)
		out = append(out, l)
	}
	return out
}

// notNil keeps null out of the JSON.
func notNil[T any](column []T) []T {
	if column == nil {
		return []T{}
	}
	return column
}
