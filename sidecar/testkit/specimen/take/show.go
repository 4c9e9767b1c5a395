package main

import (
	"fmt"

	"github.com/omni-perf/omni-perf/sidecar/testkit/specimen"
	"github.com/omni-perf/omni-perf/sidecar/understand/diagnose"
	"github.com/omni-perf/omni-perf/sidecar/understand/interpret"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// show prints what is said of kept recordings, and what it rests on.
func show(paths []string) error {
	for _, path := range paths {
		s, err := specimen.Read(path)
		if err != nil {
			return err
		}
		rec := interpret.Of(s.Recording)
		d := diagnose.Options{Line: s.Line}.Run(rec)
		r, err := report.Build(rec, &d, report.Options{Line: s.Line})
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		fmt.Printf("%s\n  %s\n", path, r.Headline.Text)
		for i, f := range r.Findings {
			fmt.Printf("    %-22s %s → %s\n", f.ID, f.Text, d.Findings[i].Advice)
		}
		for _, spent := range d.Spent[:min(len(d.Spent), 8)] {
			fmt.Printf("    %8s %-20s %s:%d\n", words.Seconds(spent.Nanos.Seconds()), spent.Cause, words.ShortFile(spent.Place.File), spent.Place.Line)
		}
		for _, p := range rec.Processes {
			fmt.Printf("    process %s (%s) %s–%s, CPU %s\n", p.Command, p.Role, words.Seconds(p.Start.Seconds()), words.Seconds(p.End.Seconds()), words.Seconds(p.CPU.Seconds()))
		}
	}
	return nil
}
