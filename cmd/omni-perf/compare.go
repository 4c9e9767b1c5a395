package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/compared"

	"github.com/spf13/cobra"

	"github.com/omni-perf/omni-perf/sidecar/compare/comparison"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/show/output"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

func compareCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "compare BEFORE.json AFTER.json [options]",
		Short: "say what differs between two recordings, and what is only noise",
		Long: `Compares reports that omni-perf run --format json wrote, or a notebook saved, as
NAME.json: the whole time, and tables per line, function, cause of GPU idle time and
kind of step, each with an interval and a verdict. Several recordings of each side
(-- is between the sides) show how much runs vary; of single ones that is assumed.

--fail-if slower=LIMIT ends with status 4 if the whole took longer by more than
LIMIT, a share (5%) or a time (200ms, 1.5s), and longer beyond noise.`,
		Annotations: map[string]string{formsNote: "omni-perf compare [options] BEFORE.json… -- AFTER.json…"},
		Args:        cobra.ArbitraryArgs,
	}
	var o compareOptions
	c.Flags().StringVar(&o.html, "html", "", "write a self-contained page with the flame graphs to `FILE`")
	c.Flags().StringVar(&o.json, "json", "", "write the comparison as JSON to `FILE`, - for standard output")
	c.Flags().Var(limitValue{&o.limit}, "fail-if", "end with status 4 if `slower=LIMIT`, as in slower=5% or slower=200ms")
	c.Flags().BoolVar(&o.quiet, "quiet", false, "print nothing, only write the files asked for")
	complete(c, "fail-if", []string{"slower=5%"})
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if o.before, o.after, err = sidesOf(args, c.ArgsLenAtDash()); err != nil {
			return err
		}
		return o.run()
	}
	return c
}

// compareOptions are the arguments of compare.
type compareOptions struct {
	before, after []string
	html, json    string
	limit         limit
	quiet         bool
}

// sidesOf parts the arguments, of which dash precede a "--" (-1: there is none).
func sidesOf(args []string, dash int) (before, after []string, err error) {
	switch {
	case len(args) < 2 && dash < 0:
		return nil, nil, misuse("name two reports to compare")
	case dash < 0 && len(args) > 2:
		return nil, nil, misuse("%d reports: part those before from those after by --, as in a1.json a2.json -- b1.json b2.json", len(args))
	case dash < 0:
		return args[:1], args[1:], nil
	case dash == 0 || dash == len(args):
		return nil, nil, misuse("name reports on both sides of --")
	}
	for _, arg := range args[dash:] {
		if strings.HasPrefix(arg, "-") && arg != "-" {
			return nil, nil, misuse("options come before the reports: %s is behind --", arg)
		}
	}
	return args[:dash], args[dash:], nil
}

func (o compareOptions) run() error {
	var files []string
	for _, path := range []string{o.html, o.json} {
		if path != "" && path != "-" {
			files = append(files, path)
		}
	}
	for _, path := range files {
		if err := output.Check(path); err != nil {
			return err
		}
	}
	before, err := readReports(o.before)
	if err != nil {
		return err
	}
	after, err := readReports(o.after)
	if err != nil {
		return err
	}
	c, err := comparison.Of(before, after)
	if err != nil {
		return err
	}
	pair := compared.Pair{Comparison: c, Before: before[0], After: after[0]}
	if !o.quiet && o.json != "-" {
		columns := 100
		if c, ok := columnsOf(os.Stdout); ok {
			columns = c
		}
		fmt.Fprint(plainText{os.Stdout}, compared.Text(pair, columns))
	}
	var results output.Results
	if err := o.write(pair, &results); err != nil {
		return err
	}
	return o.judge(c, results.Err())
}

// write writes the files asked for.
func (o compareOptions) write(pair compared.Pair, results *output.Results) error {
	put := func(path string, make func() ([]byte, error)) {
		results.Put(path, func(path string) error {
			content, err := make()
			if err != nil {
				return err
			}
			return output.WriteBytes(path, content)
		})
	}
	if o.html != "" {
		put(o.html, func() ([]byte, error) { return compared.Page(pair, scene.Options{}) })
	}
	document := func() ([]byte, error) {
		text, err := json.MarshalIndent(pair.Comparison, "", " ")
		return append(text, '\n'), err
	}
	if o.json == "-" {
		text, err := document()
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(text)
		return err
	}
	if o.json != "" {
		put(o.json, document)
	}
	return nil
}

// judge ends with the status of a comparison that is beyond the limit; written is what
// became of the files. It reports both.
func (o compareOptions) judge(c *comparison.Comparison, written error) error {
	wall := c.Wall()
	if !o.limit.exceeded(wall) {
		return written
	}
	if written != nil {
		complain(written)
	}
	fmt.Fprintf(messages, "omni-perf: slower by %s (%s), beyond the limit of %s and beyond noise.\n",
		words.Seconds(report.Seconds(wall.ChangeNS)), words.SignedPercent(float64(wall.ChangeNS)/float64(max(wall.BeforeNS, 1))), o.limit.text)
	return exitStatus(exitExceeded)
}

func readReports(files []string) ([]*report.View, error) {
	views := make([]*report.View, len(files))
	for i, file := range files {
		var err error
		if views[i], err = readReport(file); err != nil {
			return nil, err
		}
	}
	return views, nil
}

// limit is by how much a program may become slower; the zero value is no limit.
type limit struct {
	text  string
	share float64 // of the time before; 0: time counts
	time  time.Duration
}

// exceeded reports whether something is slower by more than the limit, and beyond noise:
// a difference that may be chance fails nobody's build.
func (l limit) exceeded(c comparison.Change) bool {
	return l.below(c.Verdict, float64(c.BeforeNS), float64(c.ChangeNS))
}

// below is exceeded of a change in ns.
func (l limit) below(verdict significance.Verdict, before, change float64) bool {
	if l.text == "" || verdict != significance.More {
		return false
	}
	most := float64(l.time)
	if l.time == 0 {
		most = l.share * before
	}
	return change > most
}

// limitValue is the option that names a limit.
type limitValue struct{ to *limit }

func (limitValue) Type() string   { return "slower=LIMIT" }
func (limitValue) String() string { return "" }

func (l limitValue) Set(text string) error {
	wrong := errors.New("it takes slower=LIMIT, LIMIT a share such as 5% or a time such as 200ms or 1.5s")
	value, ok := strings.CutPrefix(text, "slower=")
	if !ok {
		return wrong
	}
	if number, isShare := strings.CutSuffix(value, "%"); isShare {
		percent, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(percent >= 0) || math.IsInf(percent, 0) {
			return wrong
		}
		*l.to = limit{text: value, share: percent / 100}
		return nil
	}
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 {
		return wrong
	}
	*l.to = limit{text: value, time: d}
	return nil
}
