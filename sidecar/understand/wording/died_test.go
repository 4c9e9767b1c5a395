package wording

import (
	"strings"
	"testing"
)

func TestHowAKernelDied(t *testing.T) {
	segfault, code := 139, 3
	const gib = 1 << 30
	for want, d := range map[string]Died{
		"The kernel died by SIGSEGV, 3.0 s into cell [5], last seen in line 12: df.merge(x).": {Exit: &segfault, Signal: 11, Cell: 5, IntoS: 3, Place: "line 12: df.merge(x)"},
		// What ends a process comes after what was seen last.
		"train.py died by SIGSEGV, 3.0 s after its start, last seen 1.2 ms before in train.py:12. With -X faulthandler Python prints the line that it crashed in.": {
			Program: "train.py", Signal: 11, IntoS: 3, Place: "train.py:12", SeenS: 0.0012, Hint: true,
		},
		"train.py died by SIGKILL, 3.0 s after its start, last seen 0.40 s before in train.py:12.":          {Program: "train.py", Signal: 9, IntoS: 3, Place: "train.py:12", SeenS: 0.4, Hint: true},
		"train.py died by SIGABRT, 3.0 s after its start. GPU 1 had reported a memory page fault (Xid 31).": {Program: "train.py", Signal: 6, IntoS: 3, GPU: 1, Xid: 31},
		"train.py died by SIGSEGV, 3.0 s into the recording.":                                               {Program: "train.py", Watched: true, Signal: 11, IntoS: 3},
		"The kernel died with exit code 3, 0.50 s into a cell.":                                             {Exit: &code, IntoS: 0.5},
		"The kernel died by an unknown signal or exit code, 0.50 s into cell [1].":                          {Cell: 1, IntoS: 0.5},
		"The kernel died by SIGKILL, 3.0 s into cell [5], last seen in line 2. It had 23 GiB resident, of 24 GiB that its control group may use. " +
			"The out-of-memory killer ended 1 process of its control group meanwhile, probably this one.": {
			Signal: 9, Cell: 5, IntoS: 3, Place: "line 2", Resident: 23 * gib, GroupLimit: 24 * gib, Machine: 64 * gib, GroupKills: 1, Kills: 1,
		},
		"The kernel died by SIGABRT, 3.0 s into cell [5]. It had 1 GiB resident, of the machine's 64 GiB. The out-of-memory killer ended 2 processes of the machine meanwhile.": {
			Signal: 6, Cell: 5, IntoS: 3, Resident: gib, GroupLimit: 65 * gib, Machine: 64 * gib, Kills: 2,
		},
	} {
		if got := d.Sentence(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if got := (Died{Signal: 9}).Memory(); strings.Contains(got, "resident") {
		t.Errorf("%q says what is not known", got)
	}
}
