package traces

import "strings"

// knownDifference is a row of a golden that is not reproduced in HTA's modes.
type knownDifference struct {
	trace    string
	variants string // those that have it
	row      string // table[key], or table[key].column
	reason   string
}

const (
	// HTA sorts starts and ends together by time with numpy's unstable sort.
	// Which of two changes at the same microsecond comes first, and with it
	// the intermediate queue length, depends on the CPU's vector instructions.
	queueTies = "order of simultaneous changes in an unstable sort"
	// The same for bandwidths, which it then adds up in floating point: what
	// remains of a sum that should be zero counts as a bandwidth if positive.
	bandwidthTies = "order of simultaneous changes, and remainders of a float sum counted as bandwidth"
	// A combination that lasts 0 µs is listed or not by the same tie.
	zeroRow = "a row of 0 µs that depends on the order of simultaneous changes"
)

var knownDifferences = []knownDifference{
	{"a100-nccl-ns-3steps", "default last_step", "queue_length_summary[0|7].", queueTies},
	{"b200-eager", "default last_step", "queue_length_summary[0|7].", queueTies},
	{"h100-qwen05b", "default last_step", "queue_length_summary[0|7].", queueTies},
	{"mi210-gpu-only", "default last_step", "queue_length_summary[0|0].", queueTies},
	{"mi300x-flux-sage", "default last_step", "queue_length_summary[0|0].", queueTies},
	{"mi300x-qwen05b", "default last_step", "queue_length_summary[0|0].", queueTies},
	{"mi300x-qwen05b", "ns", "gpu_kernel_type_breakdown[MEMORY]", zeroRow},
	{"mi300x-resnet-3steps", "default last_step", "memory_bw_summary[0|Memcpy DtoD].", bandwidthTies},
	{"rtx2080ti-linear-nostep", "default last_step ns", "queue_length_summary[0|7].", queueTies},
	{"v100-cudagraph-6steps", "default last_step ns", "memory_bw_summary[1|Memcpy DtoD].", bandwidthTies},
	{"v100-dlrm-ranks0-3", "default last_step ns", "queue_length_summary[0|7].", queueTies},
	{"v100-dlrm-ranks0-3", "default last_step ns", "queue_length_summary[1|7].", queueTies},
	{"v100-dlrm-ranks0-3", "default last_step ns", "queue_length_summary[2|7].", queueTies},
	{"v100-resnet-2gpu-rank1", "default ns", "gpu_kernel_type_breakdown[COMPUTATION overlapping MEMORY]", zeroRow},
	{"v100-resnet-2gpu-rank1", "default last_step ns", "queue_length_summary[1|14].", queueTies},
	{"v100-resnet-2gpu-rank1", "default last_step ns", "queue_length_summary[1|7].", queueTies},
}

// knownFor lists the rows of one trace and variant.
func knownFor(trace, variant string) (rows []string) {
	for _, k := range knownDifferences {
		if k.trace == trace && strings.Contains(" "+k.variants+" ", " "+variant+" ") {
			rows = append(rows, k.row)
		}
	}
	return rows
}
