package saved

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/show/answers"
	"github.com/omni-perf/omni-perf/sidecar/show/chart"
)

// Question is asked of one report.
type Question struct {
	Report   string
	About    string  // one of answers.Names; empty: all in short
	From, To float64 // of a stretch, in seconds
	JSON     bool
	All      bool // all rows, not only those that fit into answers.MaxBytes
	Columns  int  // of the terminal that the answer is for
}

// Check says what of the question makes no sense: a fragment for the one who asked.
func (q Question) Check() error {
	topic := answers.Topic(q.About)
	if q.About != "" && topic.About() == "" {
		return fmt.Errorf("--what takes one of %s", strings.Join(answers.Names(), ", "))
	}
	if (q.From != 0 || q.To != 0) && topic != answers.Stretch {
		return errors.New("--from and --to go with --what stretch")
	}
	return nil
}

// Run answers: in words on text, as JSON on stdout.
func (q Question) Run(text, stdout io.Writer) error {
	v, err := Read(q.Report)
	if err != nil {
		return err
	}
	if q.About == "" && !q.JSON {
		_, err = io.WriteString(text, chart.Text(v, q.Columns))
		return err
	}
	about := answers.Topic(q.About)
	if about == "" {
		about = answers.Headline
	}
	a, err := answers.Of(v, answers.Question{About: about, From: q.From, To: q.To})
	if err != nil {
		return err
	}
	most := answers.MaxBytes
	if q.All {
		most = 0
	}
	if !q.JSON {
		_, err = io.WriteString(text, a.Text(most))
		return err
	}
	document, err := a.JSON(most)
	if err == nil {
		_, err = stdout.Write(document)
	}
	return err
}
