package snapshot

import (
	"reflect"
	"testing"
)

func TestMemoryOfADeviceIsDividedByStateAndLine(t *testing.T) {
	own, library := &Frame{File: "/home/ann/train.py", Function: "forward", Line: 31}, &Frame{File: "/x/site-packages/torch/nn/functional.py", Function: "linear", Line: 7}
	native := &Frame{File: "??", Function: "at::native::mm"}
	s := &Snapshot{
		Stacks: []Stack{nil, {native, library, own}, {native, library}, {native}},
		Segments: []Segment{
			{Device: 0, Total: 100, Kind: "large", Blocks: []Block{{Size: 30, State: Active, Stack: 1}, {Size: 20, State: Inactive}, {Size: 40, State: Active, Stack: 2}, {Size: 10, State: AwaitingFree, Stack: 1}}},
			{Device: 0, Total: 50, Kind: "small", Blocks: []Block{{Size: 50, State: Inactive}}},
			{Device: 0, Total: 60, Kind: "large", Blocks: []Block{{Size: 25, State: Active, Stack: 1}, {Size: 15, State: Active, Stack: 3}, {Size: 20, State: Active}}},
			{Device: 1, Total: 1000, Kind: "large", Blocks: []Block{{Size: 1000, State: Active, Stack: 1}}},
		},
	}
	want := Held{
		Segments: 3, Reserved: 210, InUse: 130, AwaitingFree: 10, Free: 70, LargestFree: 50, Releasable: 50,
		Lines: []HeldLine{{*own, 55, 2}, {*library, 40, 1}}, Unplaced: 35,
	}
	if got := s.Held(0); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := (&Snapshot{}).Held(0); !reflect.DeepEqual(got, Held{}) {
		t.Errorf("of nothing: %+v", got)
	}
}
