package analyses

import (
	"regexp"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

// KernelKind is what a device event does, by HTA's names.
type KernelKind uint8

const (
	Computation KernelKind = iota
	Communication
	MemoryOp
	OtherKind // waits and markers: device time, but no work of its own
	anyOfThem // not a kind: stands for all of them
)

func (k KernelKind) String() string {
	return [...]string{"COMPUTATION", "COMMUNICATION", "MEMORY", "OTHER"}[k]
}

// noCompute are names of waits and of MTIA bookkeeping. As in HTA, "Sync" may
// stand anywhere in the name.
var noCompute = regexp.MustCompile(`(?s)^(?:.*Sync|Stream Wait Event|runFunction|job_exe|packet|pe_exe|cpum_exe_subgraph|collective_subgraph_execution)`)

// exactKind classifies by category first, then by name.
func exactKind(name string, class kineto.DeviceClass) KernelKind {
	if class == kineto.ClassMemcpy || class == kineto.ClassMemset {
		return MemoryOp
	}
	lower := strings.ToLower(name)
	switch {
	case strings.Contains(lower, "nccl"), strings.Contains(lower, "rccl"), strings.HasPrefix(name, "hccl"):
		return Communication
	case strings.HasPrefix(name, "Memcpy"), strings.HasPrefix(name, "Memset"), strings.HasPrefix(name, "dma"):
		return MemoryOp
	case noCompute.MatchString(name):
		return OtherKind
	}
	return Computation
}

// KindOfName is what a device event of that name does, where its category is not known.
func KindOfName(name string) KernelKind { return exactKind(name, kineto.ClassKernel) }

// HTA's own patterns (hta/common/types.py), which Python's re.match anchors at
// the start of the name.
var (
	htaComm    = regexp.MustCompile(`^(?:nccl|hip|hccl|.*ncclKernel)`)
	htaMemory  = regexp.MustCompile(`^(?:(?:hip)?Memcpy|(?:hip)?Memset|dma)`)
	htaCompute = regexp.MustCompile(`^(?:nccl|.*Memcpy|.*Memset|.*dma|.*Sync|Stream Wait Event|cuda.*LaunchKernel|runFunction|hip|job_exe|packet|pe_exe|cpum_exe_subgraph|hccl|collective_subgraph_execution)`)
)

// htaKind classifies by name alone, as HTA does.
func htaKind(name string) KernelKind {
	switch {
	case htaComm.MatchString(name):
		return Communication
	case htaMemory.MatchString(name):
		return MemoryOp
	case htaCompute.MatchString(name):
		return OtherKind
	}
	return Computation
}

// kinds caches the kind of each name of a trace.
type kinds struct {
	t    *kineto.Trace
	hta  bool
	seen map[kindKey]KernelKind
}

type kindKey struct {
	name  kineto.Sym
	class kineto.DeviceClass
}

func (k *kinds) of(name kineto.Sym, class kineto.DeviceClass) KernelKind {
	if k.hta {
		class = kineto.ClassKernel
	}
	key := kindKey{name, class}
	kind, ok := k.seen[key]
	if !ok {
		if k.hta {
			kind = htaKind(k.t.Text(name))
		} else {
			kind = exactKind(k.t.Text(name), class)
		}
		k.seen[key] = kind
	}
	return kind
}
