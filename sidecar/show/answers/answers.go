// Package answers says what a report has on one question, briefly: for agents and scripts,
// and for people in a terminal who want one table and no picture.
//
// In flows a report.View and a Question, out flows an Answer: rows that all have the same
// shape, each with its place and its seconds. Text and JSON of an Answer are at most as long
// as asked, and say how many rows were left out. The same report gives the same answer.
package answers

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// MaxBytes is how long an answer is for those who pay for each word.
const MaxBytes = 2000

// Question is what somebody wants to know of a report.
type Question struct {
	About    Topic
	From, To float64 // of the recording, in seconds; To 0 is its end. Only the topic "stretch" reads them.
}

// Answer is what a report has on a question.
type Answer struct {
	Report  string  `json:"report"`     // what was recorded
	Seconds float64 `json:"duration_s"` // how long
	About   string  `json:"about"`      // what the rows are, and of what their shares are
	Rows    []Row   `json:"rows"`       // most of it first
	LeftOut int     `json:"left_out"`   // rows for which there was no room
}

// Row is one line, function, cause, finding … What does not apply is absent.
type Row struct {
	Place   string   `json:"place,omitempty"` // train.py:12
	Name    string   `json:"name,omitempty"`
	Seconds *float64 `json:"seconds,omitempty"`
	Share   *float64 `json:"share,omitempty"` // 0 to 1
	Says    string   `json:"says,omitempty"`  // in words
	Code    string   `json:"code,omitempty"`  // the line's text
	Advice  string   `json:"advice,omitempty"`
}

// Of answers a question.
func Of(v *report.View, q Question) (Answer, error) {
	whole := report.Seconds(v.DurationNS)
	a := Answer{Report: words.Clean(v.Target().Name, words.MaxName), Seconds: micros(whole)}
	answer, known := topics[q.About]
	if !known {
		return a, fmt.Errorf("there is no topic %q; the topics are %s", words.Clean(string(q.About), words.MaxName), words.List(Names()))
	}
	if q.To == 0 {
		q.To = whole
	}
	if !(q.From >= 0 && q.From < q.To && q.To <= whole*(1+1e-9)) {
		return a, fmt.Errorf("the recording is from 0 to %s; there is no stretch from %s to %s", words.Seconds(whole), words.Seconds(q.From), words.Seconds(q.To))
	}
	a.About, a.Rows = answer.rows(&asked{v, q})
	if a.Rows == nil {
		a.Rows = []Row{}
	}
	return a, nil
}

// Text is the answer as lines, at most so many bytes; 0 is no limit.
func (a Answer) Text(most int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s, %s: %s\n", a.Report, words.Seconds(a.Seconds), a.About)
	if len(a.Rows) == 0 && !strings.Contains(a.About, ": no") { // else it says why there are none
		text.WriteString("None are known.\n")
	}
	for i, r := range a.Rows {
		line := r.line() + "\n"
		rest := restOf(a.LeftOut + len(a.Rows) - i)
		if most > 0 && text.Len()+len(line)+len(rest) > most {
			text.WriteString(rest)
			return text.String()
		}
		text.WriteString(line)
	}
	if a.LeftOut > 0 {
		text.WriteString(restOf(a.LeftOut))
	}
	return text.String()
}

func restOf(rows int) string {
	return words.Plural(rows, "more row is", "more rows are") + " left out.\n"
}

// JSON is the answer for programs, at most so many bytes; 0 is no limit.
func (a Answer) JSON(most int) ([]byte, error) {
	text, err := json.MarshalIndent(a, "", " ")
	for most > 0 && len(text) > most && len(a.Rows) > 0 && err == nil {
		a.Rows, a.LeftOut = a.Rows[:len(a.Rows)-1], a.LeftOut+1
		text, err = json.MarshalIndent(a, "", " ")
	}
	return append(text, '\n'), err
}

func (r Row) line() string {
	var parts []string
	add := func(part string) {
		if part != "" {
			parts = append(parts, part)
		}
	}
	add(r.Place)
	add(r.Name)
	if r.Seconds != nil {
		add(words.Seconds(*r.Seconds))
	}
	if r.Share != nil {
		add(words.Percent(*r.Share))
	}
	add(r.Says)
	add(r.Code)
	add(r.Advice)
	return strings.Join(parts, "  ")
}

// spent is a row of time; of is what its share is of, 0 for none.
func spent(ns, of int64) Row {
	s := micros(report.Seconds(ns))
	r := Row{Seconds: &s}
	if of > 0 {
		share := math.Round(float64(ns)/float64(of)*1e4) / 1e4
		r.Share = &share
	}
	return r
}

// micros rounds to microseconds, which is what a report's columns have.
func micros(s float64) float64 { return math.Round(s*1e6) / 1e6 }
