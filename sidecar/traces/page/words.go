package page

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// longest bounds foreign text on a page, in characters: names of C++ kernels are long.
const longest = 4000

// plain makes foreign text safe to show on one line.
func plain(text string) string { return words.Clean(text, longest) }

// cut makes foreign text fit into a number of columns.
func cut(text string, columns int) string { return words.Cut(plain(text), columns) }

// Figures of sentences and charts are written as everywhere else; those of tables
// have three digits, so that rows can be compared.

func length(us float64) string         { return words.Seconds(us / 1e6) }
func share(part float64) string        { return words.Percent(part) }
func percentOf(hundred float64) string { return words.Percent(hundred / 100) }
func bytesOf(n float64) string         { return words.Quantity(n, "B") }

// howMuch is a share of a whole, in front of "of".
func howMuch(of float64) string {
	switch of {
	case 0:
		return "none"
	case 1:
		return "all"
	}
	return share(of)
}

// duration writes microseconds with three significant digits.
func duration(us float64) string {
	switch a := math.Abs(us); {
	case math.IsNaN(us):
		return "–"
	case a >= 99.5e3: // as words.Seconds
		return digits(us/1e6) + " s"
	case a >= 1e3:
		return digits(us/1e3) + " ms"
	}
	return digits(us) + " µs"
}

func digits(v float64) string {
	switch a := math.Abs(v); {
	case v == math.Trunc(v) && a < 1e6:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 0.9995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

// flopText writes floating-point operations, or with a unit of time those in it.
func flopText(n float64, per string) string {
	prefixes := []string{"", "k", "M", "G", "T", "P"}
	i := 0
	for ; n >= 1000 && i < len(prefixes)-1; i++ {
		n /= 1000
	}
	return digits(n) + " " + prefixes[i] + "FLOP" + per
}

func percentText(p float64) string {
	if math.IsNaN(p) {
		return "–"
	}
	return strconv.FormatFloat(p, 'f', 1, 64) + " %"
}

// identifiers are columns whose numbers name something.
var identifiers = []string{"rank", "device", "stream", "step", "first_step", "last_step", "cycle", "process", "line",
	"correlation", "straggler", "slowest_rank", "min_rank", "max_rank"}

// cellText is a table's value for people.
func cellText(c *table.Column, row int) string {
	switch v := c.Value(row).(type) {
	case string:
		return plain(v)
	case int64:
		switch {
		case c.Kind == table.Bytes:
			return bytesOf(float64(v))
		case slices.Contains(identifiers, c.Name):
			return strconv.FormatInt(v, 10)
		}
		return words.Count(v)
	case float64:
		switch c.Kind {
		case table.Micros:
			return duration(v)
		case table.Percent:
			return percentText(v)
		case table.Ratio:
			return percentText(100 * v)
		case table.Flop:
			return flopText(v, "")
		case table.FlopPerS:
			return flopText(v, "/s")
		case table.GBps:
			return digits(v) + " GB/s"
		}
		return digits(v)
	}
	return "–"
}

// heading is a column's name for people: units are with the values.
func heading(c *table.Column) string {
	if c.Kind == table.FlopPerS {
		return "FLOP/s"
	}
	name := c.Name
	for _, suffix := range []string{"_us", "_bytes", "_gbps", "_pctg"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return strings.ReplaceAll(name, "_", " ")
}

// headingIn is the heading of a column in a table: what is subtracted from the time of an annotation or module is the time of those
// inside it, not that of operators, which the self time of the table of operators is without.
func headingIn(t *table.Table, c *table.Column) string {
	text := heading(c)
	switch t.Name {
	case analyses.TableAnnotations, analyses.TableModules, analyses.TableModuleClasses:
		if of, self := strings.CutPrefix(text, "self "); self {
			return of + " without inner"
		}
	}
	return text
}

// capital begins a sentence with a text of this package.
func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

func plural(n int, one string) string { return words.Plural(n, one, one+"s") }
