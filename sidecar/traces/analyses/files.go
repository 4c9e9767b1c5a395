package analyses

import "github.com/omni-perf/omni-perf/sidecar/traces/table"

// fileFacts are what a file says about itself.
type fileFacts struct {
	file, host    string
	pid           int64
	start, length int64 // ns; start since the epoch
	events        int64
	steps         []int
}

func observeFile(r *recording) fileFacts {
	t := r.t
	return fileFacts{
		file: t.File, host: t.Process.Host, pid: t.Process.PID, start: t.UnixNs(t.First), length: t.Last - t.First,
		events: t.Records, steps: r.found,
	}
}

// answerFiles lists the files by rank and cycle: how schedule(repeat=…) was
// understood.
func answerFiles(a asked[fileFacts]) []*table.Table {
	t := table.New(TableRecordings, "The files",
		&table.Column{Name: "rank", Kind: table.Int},
		&table.Column{Name: "cycle", Kind: table.Int}, // from 1 on
		&table.Column{Name: "host", Kind: table.Text, Optional: true},
		&table.Column{Name: "process", Kind: table.Int},
		&table.Column{Name: "start_us", Kind: table.Micros}, // since the first of all files
		&table.Column{Name: "duration_us", Kind: table.Micros},
		&table.Column{Name: "first_step", Kind: table.Int}, // ProfilerStep#N; none if there are no steps
		&table.Column{Name: "last_step", Kind: table.Int},
		&table.Column{Name: "events", Kind: table.Int},
		&table.Column{Name: "file", Kind: table.Text})
	zero, any := int64(0), false
	for _, rank := range a.ranks {
		for _, f := range rank.parts {
			if !any || f.start < zero {
				zero, any = f.start, true
			}
		}
	}
	for _, rank := range a.ranks {
		for i, f := range rank.parts {
			first, last := int64(table.None), int64(table.None)
			if n := len(f.steps); n > 0 {
				first, last = int64(f.steps[0]), int64(f.steps[n-1])
			}
			t.Add(rank.rank, i+1, f.host, known(f.pid, f.pid >= 0), micros(f.start-zero), micros(f.length), first, last, f.events, f.file)
		}
	}
	return []*table.Table{t}
}
