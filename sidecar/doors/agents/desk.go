package agents

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/compared"

	"github.com/omni-perf/omni-perf/sidecar/compare/comparison"
	"github.com/omni-perf/omni-perf/sidecar/doors/profiler"
	"github.com/omni-perf/omni-perf/sidecar/doors/program"
	"github.com/omni-perf/omni-perf/sidecar/show/answers"
	"github.com/omni-perf/omni-perf/sidecar/traces/request"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// desk answers the calls.
type desk struct{ files *shelf }

// columns is how wide tables are: a line of one is a row of an answer.
const columns = 110

func (d *desk) ask(file string, q answers.Question) (string, error) {
	v, err := d.files.read(file)
	if err != nil {
		return "", err
	}
	a, err := answers.Of(v, q)
	if err != nil {
		return "", err
	}
	return a.Text(answers.MaxBytes), nil
}

func (d *desk) stretch(_ context.Context, in ofStretch) (string, error) {
	return d.ask(in.Report, answers.Question{About: answers.Stretch, From: in.From, To: in.To})
}

func (d *desk) compare(_ context.Context, in ofTwo) (string, error) {
	before, err := d.files.read(in.Before)
	if err != nil {
		return "", err
	}
	after, err := d.files.read(in.After)
	if err != nil {
		return "", err
	}
	c, err := comparison.Of([]*report.View{before}, []*report.View{after})
	if err != nil {
		return "", err
	}
	return compared.Text(compared.Pair{Comparison: c, Before: before, After: after}, columns), nil
}

func (d *desk) kernels(context.Context, ofNothing) (string, error) {
	running := program.Kernels()
	if len(running) == 0 {
		return "No notebook kernel of this user is running.\n", nil
	}
	var text strings.Builder
	err := program.ListKernels(&text, running, profiler.MainStack)
	return text.String(), err
}

func (d *desk) trace(ctx context.Context, in ofTrace) (string, error) {
	q := &request.Request{Paths: []string{in.Path}, Columns: columns}
	if in.Table != "" {
		q.Analyses.Tables = []string{in.Table}
	}
	if err := q.Check(); err != nil {
		return "", err
	}
	var text strings.Builder
	err := q.Run(ctx, &text, io.Discard)
	return text.String(), err
}

func (d *desk) recordings(_ context.Context, in ofFolder) (string, error) {
	folder := cmp.Or(in.Folder, ".")
	found, more, err := d.files.list(folder)
	if err != nil {
		return "", err
	}
	whole, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s in %s:\n", words.Plural(len(found)+more, "recording", "recordings"), words.Clean(whole, words.MaxName))
	for _, r := range found {
		fmt.Fprintf(&text, "%s  %s  %s, %s: %s\n", words.Clean(r.file, words.MaxName), r.changed.UTC().Format("2006-01-02 15:04:05Z"), words.Clean(r.view.Target().Name, 60),
			words.Seconds(report.Seconds(r.view.DurationNS)), r.view.Headline.Text)
	}
	if more > 0 {
		fmt.Fprintf(&text, "%s left out.\n", words.Plural(more, "older one is", "older ones are"))
	}
	return text.String(), nil
}
