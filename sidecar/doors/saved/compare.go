package saved

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/omni-perf/omni-perf/sidecar/compare/comparison"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/compared"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/show/output"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Comparison is asked for of reports of one program before and after a change.
type Comparison struct {
	Before, After []string
	HTML          string // a file; empty: none
	JSON          string // the same; Stdio: on standard output, in place of the text
	Limit         significance.Limit
	Quiet         bool // no text, only files
	Columns       int  // of the terminal that the text is for
}

// Run compares and writes. text takes the comparison in words, stdout what is asked for as
// JSON, messages what goes wrong where the error is a significance.Exceeded.
func (q Comparison) Run(text, stdout, messages io.Writer) error {
	for _, path := range []string{q.HTML, q.JSON} {
		if path == "" || path == Stdio {
			continue
		}
		if err := output.Check(path); err != nil {
			return err
		}
	}
	before, err := ReadAll(q.Before)
	if err != nil {
		return err
	}
	after, err := ReadAll(q.After)
	if err != nil {
		return err
	}
	c, err := comparison.Of(before, after)
	if err != nil {
		return err
	}
	pair := compared.Pair{Comparison: c, Before: before[0], After: after[0]}
	if !q.Quiet && q.JSON != Stdio {
		fmt.Fprint(text, compared.Text(pair, q.Columns))
	}
	written := q.write(pair, stdout)
	verdict := q.judge(c)
	if verdict == nil {
		return written
	}
	if written != nil {
		fmt.Fprintf(messages, "omni-perf: %s\n", words.Sentence(written.Error()))
	}
	return verdict
}

// write writes the files asked for.
func (q Comparison) write(pair compared.Pair, stdout io.Writer) error {
	document := func() ([]byte, error) {
		text, err := json.MarshalIndent(pair.Comparison, "", " ")
		return append(text, '\n'), err
	}
	var results output.Results
	if q.HTML != "" {
		results.PutBytes(q.HTML, func() ([]byte, error) { return compared.Page(pair, scene.Options{}) })
	}
	switch q.JSON {
	case "":
	case Stdio:
		text, err := document()
		if err != nil {
			return err
		}
		if _, err := stdout.Write(text); err != nil {
			return err
		}
	default:
		results.PutBytes(q.JSON, document)
	}
	return results.Err()
}

// judge is a significance.Exceeded where the whole is slower by more than the limit.
func (q Comparison) judge(c *comparison.Comparison) error {
	wall := c.Wall()
	if !q.Limit.Exceeded(wall.Verdict, float64(wall.BeforeNS), float64(wall.ChangeNS)) {
		return nil
	}
	return significance.Exceeded(fmt.Sprintf("slower by %s (%s), beyond the limit of %s and beyond noise",
		words.Seconds(report.Seconds(wall.ChangeNS)), words.SignedPercent(float64(wall.ChangeNS)/float64(max(wall.BeforeNS, 1))), q.Limit))
}
