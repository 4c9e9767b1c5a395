package activity

import "github.com/omni-perf/omni-perf/sidecar/measure/timeline"

// What the tests' programs are made of.
const (
	sec = timeline.Nanos(1e9)

	cellFile   = "/tmp/ipykernel_1/123.py"
	scriptFile = "/home/u/train.py"
	site       = "/x/site-packages/"

	inline  = "_SingleProcessDataLoaderIter._next_data"
	workers = "_MultiProcessingDataLoaderIter._next_data"

	torchModule = "/x/site-packages/torch/nn/modules/module.py"
	c10d        = "/x/site-packages/torch/distributed/distributed_c10d.py"
	dynamo      = "/x/site-packages/torch/_dynamo/convert_frame.py"
)
