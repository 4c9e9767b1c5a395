package server

import "github.com/omni-perf/omni-perf/sidecar/understand/report"

// displayType is the media type of what a notebook's file says of a cell in figures,
// beside the picture: papermill, nbconvert and scripts read it there.
const displayType = "application/vnd.omni-perf+json"

// displayDocument is the name of what is displayed, not of the report itself.
const displayDocument = "omni_perf.display"

// displayed is a cell in a few figures: under 1 kB, since every output repeats it.
// Names and units are the report's.
type displayed struct {
	Document        string        `json:"document"`
	Version         int           `json:"version"` // of the report's schema
	Name            string        `json:"name"`
	Headline        shownHeadline `json:"headline"`
	WallNS          int64         `json:"wall_ns"`
	BusyNS          *int64        `json:"busy_ns"` // of the devices in use together; null: none was, or it is not known
	IdleNS          *int64        `json:"idle_ns"`
	UnknownNS       *int64        `json:"unknown_ns"`
	PeakMemoryBytes *int64        `json:"peak_memory_bytes"` // of the process
	// PeakMemoryAtLeast: it is the most that was seen.
	PeakMemoryAtLeast bool            `json:"peak_memory_at_least,omitempty"`
	Outcome           *report.Outcome `json:"outcome"`
}

type shownHeadline struct {
	Kind    report.HeadlineKind `json:"kind"`
	Finding *string             `json:"finding"` // its id
	Text    string              `json:"text"`
}

// displayData sums a report up.
func displayData(r *report.View) displayed {
	d := displayed{
		Document: displayDocument, Version: report.Version, Name: r.Name, WallNS: r.DurationNS,
		Headline: shownHeadline{Kind: r.Headline.Kind, Text: r.Headline.Text},
	}
	if f := r.MainFinding(); f != nil {
		d.Headline.Finding = &f.ID
	}
	if c := r.Target().Cell; c != nil {
		d.Outcome = &c.Outcome
	}
	d.PeakMemoryBytes, d.PeakMemoryAtLeast = r.Processes[r.Program()].PeakMemory()
	var busy, idle, unknown int64
	for _, v := range r.Devices {
		if v.Used {
			busy, idle, unknown = busy+v.BusyNS, idle+v.IdleNS, unknown+v.UnknownNS
		}
	}
	if busy+idle > 0 {
		d.BusyNS, d.IdleNS, d.UnknownNS = &busy, &idle, &unknown
	}
	return d
}
