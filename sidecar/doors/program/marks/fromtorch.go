package marks

import "maps"

// Bounds of what one process can send of torch.profiler.
const (
	maxTraces  = 128
	maxRemarks = 16
)

// Trace is a trace that torch.profiler has written in a process.
type Trace struct {
	Path       string
	Cycle      string // "ep0-ba5-rank0"; empty: the program's own profiler wrote it
	Rank       int
	Start, End int64 // when it recorded, CLOCK_MONOTONIC; 0 and 0: not known
}

// FromTorch is what one process has sent of torch.profiler, under --torch.
type FromTorch struct {
	Traces  []Trace
	Remarks []string // what the user should know, sentences
}

func (r *Receiver) keepTorch(pid int, d *decoder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.sent[pid]
	if of == nil {
		if len(r.sent) >= maxRaised {
			return
		}
		of = &FromTorch{}
		r.sent[pid] = of
	}
	if d.trace.Path != "" && len(of.Traces) < maxTraces {
		of.Traces = append(of.Traces, d.trace)
	}
	if d.remark != "" && len(of.Remarks) < maxRemarks {
		of.Remarks = append(of.Remarks, d.remark)
	}
}

// FromTorch returns what processes have sent of torch.profiler, by their ids.
func (r *Receiver) FromTorch() map[int]*FromTorch {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.sent)
}
