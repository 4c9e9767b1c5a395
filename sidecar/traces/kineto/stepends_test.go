package kineto

import (
	"reflect"
	"testing"
)

// torch.profiler's step() in a hook of the optimizer, as HF's and our own are: the next step begins within the optimizer's range.
func TestAnOptimizerEndsWithItsStep(t *testing.T) {
	p := mustRead(t, `{"traceEvents":[
	 {"ph":"X","cat":"user_annotation","name":"ProfilerStep#3","pid":1,"tid":2,"ts":0,"dur":100},
	 {"ph":"X","cat":"user_annotation","name":"Optimizer.step#SGD.step","pid":1,"tid":2,"ts":90,"dur":15},
	 {"ph":"X","cat":"user_annotation","name":"ProfilerStep#4","pid":1,"tid":2,"ts":101,"dur":99},
	 {"ph":"X","cat":"user_annotation","name":"Optimizer.step#SGD.step","pid":1,"tid":2,"ts":180,"dur":9},
	 {"ph":"X","cat":"user_annotation","name":"Optimizer.step#SGD.step","pid":1,"tid":2,"ts":190,"dur":2000,"args":{"finished":false}},
	 {"ph":"X","cat":"user_annotation","name":"Optimizer.step#SGD.step","pid":1,"tid":3,"ts":190,"dur":500},
	 {"ph":"X","cat":"user_annotation","name":"epoch","pid":1,"tid":2,"ts":80,"dur":500}]}`)
	if want := []int64{100000, 10000, 99000, 9000, 10000, 500000, 500000}; !reflect.DeepEqual(p.t.Ops.Dur, want) {
		t.Errorf("got %v, want %v", p.t.Ops.Dur, want)
	}
}
