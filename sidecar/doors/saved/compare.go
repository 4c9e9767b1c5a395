package saved

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/compare/comparison"
	picture "github.com/omni-perf/omni-perf/sidecar/show/chart/compared"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/show/output"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Comparison is asked for of reports of one program, or of the cells of one notebook, before and after a change.
type Comparison struct {
	Before, After []string
	HTML          string // a file; empty: none
	JSON          string // the same; Stdio: on standard output, in place of the text
	Limit         significance.Limit
	Quiet         bool // no text, only files
	Columns       int  // of the terminal that the text is for
}

// compared is what was compared.
type compared interface {
	Text() string
	JSON() ([]byte, error)
	Judge(significance.Limit) error // a significance.Exceeded where something is slower by more than the limit
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
	c, err := q.compare()
	if err != nil {
		return err
	}
	if !q.Quiet && q.JSON != Stdio {
		fmt.Fprint(text, c.Text())
	}
	written := q.write(c, stdout)
	verdict := c.Judge(q.Limit)
	if verdict == nil {
		return written
	}
	if written != nil {
		fmt.Fprintf(messages, "omni-perf: %s\n", words.Sentence(written.Error()))
	}
	return verdict
}

func (q Comparison) compare() (compared, error) {
	notebooks, err := areNotebooks(slices.Concat(q.Before, q.After))
	if err != nil {
		return nil, err
	}
	if notebooks && q.HTML != "" {
		return nil, errNoPage
	}
	if notebooks {
		return q.notebooks()
	}
	before, err := ReadAll(q.Before)
	if err != nil {
		return nil, err
	}
	after, err := ReadAll(q.After)
	if err != nil {
		return nil, err
	}
	c, err := comparison.Of(before, after)
	if err != nil {
		return nil, err
	}
	return ofReports{picture.Pair{Comparison: c, Before: before[0], After: after[0]}, q.Columns}, nil
}

// write writes the files asked for.
func (q Comparison) write(c compared, stdout io.Writer) error {
	var results output.Results
	if reports, ok := c.(ofReports); ok && q.HTML != "" {
		results.PutBytes(q.HTML, reports.Page)
	}
	switch q.JSON {
	case "":
	case Stdio:
		text, err := c.JSON()
		if err != nil {
			return err
		}
		if _, err := stdout.Write(text); err != nil {
			return err
		}
	default:
		results.PutBytes(q.JSON, c.JSON)
	}
	return results.Err()
}

// ofReports is a comparison of reports.
type ofReports struct {
	pair    picture.Pair
	columns int
}

func (c ofReports) Text() string          { return picture.Text(c.pair, c.columns) }
func (c ofReports) Page() ([]byte, error) { return picture.Page(c.pair, scene.Options{}) }

func (c ofReports) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(c.pair.Comparison, "", " ")
	return append(text, '\n'), err
}

func (c ofReports) Judge(limit significance.Limit) error {
	wall := c.pair.Comparison.Wall()
	if !limit.Exceeded(wall.Verdict, float64(wall.BeforeNS), float64(wall.ChangeNS)) {
		return nil
	}
	return significance.Exceeded(fmt.Sprintf("slower by %s (%s), beyond the limit of %s and beyond noise",
		words.Seconds(report.Seconds(wall.ChangeNS)), words.SignedPercent(float64(wall.ChangeNS)/float64(max(wall.BeforeNS, 1))), limit))
}
