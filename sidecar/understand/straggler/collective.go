package straggler

import "strings"

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

// collectives are the functions of torch.distributed, deepspeed.comm and horovod that
// return when others have come, too.
var collectives = []string{
	"all_reduce", "allreduce", "barrier", "monitored_barrier", "broadcast", "all_gather", "allgather", "reduce_scatter", "all_to_all",
	"alltoall", "gather", "scatter", "reduce", "send", "recv", "isend", "irecv", "batch_isend_irecv", "wait", "synchronize",
}

var setUps = []string{
	"init_process_group", "new_group", "new_subgroups", "_store_based_barrier", "_new_process_group_helper",
	"_sync_module_states", "_verify_param_shape_across_processes", "_sync_params_and_buffers", "rendezvous",
}

// homes are where collectives are defined.
var homes = []string{"/torch/distributed/", "/torch/nn/parallel/distributed.py", "/deepspeed/comm/", "/horovod/"}

// Of tells in which collective a function is, None for most.
func Of(file, function string) Collective {
	file = strings.ReplaceAll(file, `\`, "/")
	name := function[strings.LastIndexByte(function, '.')+1:]
	if name == "_engine_run_backward" && strings.HasSuffix(file, "/torch/autograd/graph.py") {
		return Backward
	}
	for _, home := range homes {
		if !strings.Contains(file, home) {
			continue
		}
		if name == "destroy_process_group" {
			return TearDown
		}
		for _, setUp := range setUps {
			if name == setUp {
				return SetUp
			}
		}
		for _, known := range collectives {
			if name == known || strings.HasPrefix(name, known+"_") && !strings.HasSuffix(name, "_list") { // all_gather_object, …
				return Collective(known)
			}
		}
	}
	return None
}
