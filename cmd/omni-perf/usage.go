package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// usageError is a mistake in the arguments: a fragment that "see … --help" follows.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func misuse(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// dashes lets options be spelled as the original omni_perf did, --prof_interval.
func dashes(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
}

// optionError says what is wrong with an option.
func optionError(c *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		missing *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
		syntax  *pflag.InvalidSyntaxError
	)
	switch {
	case errors.As(err, &unknown):
		if letters := unknown.GetSpecifiedShortnames(); letters != "" {
			return noOption(c.Flags(), "-"+letters)
		}
		return noOption(c.Flags(), "--"+unknown.GetSpecifiedName())
	case errors.As(err, &missing):
		return misuse("%s needs a value", spelled(missing.GetFlag()))
	case errors.As(err, &invalid):
		return misuse("%s: %s", spelled(invalid.GetFlag()), valueProblem(invalid))
	case errors.As(err, &syntax):
		return noOption(c.Flags(), syntax.GetSpecifiedFlag())
	}
	return usageError{err}
}

func spelled(f *pflag.Flag) string {
	if f.Shorthand != "" {
		return "-" + f.Shorthand + ", --" + f.Name
	}
	return "--" + f.Name
}

// valueProblem says what a value should have been; package strconv speaks of its
// functions instead.
func valueProblem(e *pflag.InvalidValueError) string {
	switch e.GetFlag().Value.Type() {
	case "int", "int64", "uint64":
		return fmt.Sprintf("%q is not a whole number", e.GetValue())
	case "float64":
		return fmt.Sprintf("%q is not a number such as 1.5", e.GetValue())
	case "bool":
		return fmt.Sprintf("%q is neither true nor false", e.GetValue())
	case "duration":
		return fmt.Sprintf("%q is not a length of time such as 30us or 2ms", e.GetValue())
	}
	return e.Unwrap().Error()
}

// writeUsage and writeHelp are cobra's, shorter. Package text/template stays out of
// the program that way.
func writeUsage(c *cobra.Command) error {
	c.Print(usageOf(c))
	return nil
}

func writeHelp(c *cobra.Command, _ []string) { fmt.Fprint(c.OutOrStdout(), usageOf(c)) }

func usageOf(c *cobra.Command) string {
	var b strings.Builder
	if c.HasParent() {
		use, _, _ := strings.Cut(c.UseLine(), "\n")
		fmt.Fprintf(&b, "usage: %s\n", use)
		for _, also := range forms(c) {
			fmt.Fprintf(&b, "       %s\n", also)
		}
	} else {
		fmt.Fprint(&b, "usage: omni-perf COMMAND …\n       omni-perf [options of run] SCRIPT [ARG…]\n")
	}
	if text := strings.TrimSpace(c.Long); text != "" {
		fmt.Fprintf(&b, "\n%s\n", text)
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprint(&b, "\ncommands:\n")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, "  %-11s %s\n", sub.Name(), sub.Short)
			}
		}
	}
	if c.HasAvailableLocalFlags() && c.HasParent() {
		fmt.Fprintf(&b, "\noptions:\n%s", c.LocalFlags().FlagUsagesWrapped(helpColumns))
	}
	return b.String()
}

// helpColumns is the width of the help: that of most terminals' windows.
const helpColumns = 100

// formsNote is the annotation with a command's further usages, one per line.
const formsNote = "forms"

func forms(c *cobra.Command) []string {
	if text := c.Annotations[formsNote]; text != "" {
		return strings.Split(text, "\n")
	}
	return nil
}

// exactly is cobra.ExactArgs in our words: what is the one thing that is wanted.
func exactly(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return misuse("name %s", what)
		case len(args) > 1:
			return misuse("%q is one argument too many", args[1])
		}
		return nil
	}
}

// atMost takes one argument, or none.
func atMost(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return exactly(what)(c, args)
	}
}

func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return misuse("%q is one argument too many", args[0])
	}
	return nil
}

// onceValue is a text of which one counts: another one is no way to name more.
type onceValue struct {
	value string
	given bool
}

func (v *onceValue) Type() string   { return "string" }
func (v *onceValue) String() string { return v.value }

func (v *onceValue) Set(text string) error {
	if v.given && text != v.value {
		return fmt.Errorf("it was %q before; -o NAME --format json,html writes several files", v.value)
	}
	v.value, v.given = text, true
	return nil
}

// secondsValue is an option in seconds: an interval, unless it may be any.
type secondsValue struct {
	to   *time.Duration
	zero bool // 0 and more than the longest interval are values, too
}

func (s secondsValue) Type() string { return "SECONDS" }

func (s secondsValue) String() string {
	if s.to == nil || *s.to == 0 {
		return ""
	}
	return words.Decimal(s.to.Seconds())
}

func (s secondsValue) Set(text string) error {
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case s.zero && (err != nil || !(v >= 0) || v > math.MaxInt64/1e9):
		return fmt.Errorf("%q is not a number of seconds", text)
	case !s.zero && (err != nil || !(v > 0) || v > timeline.MaxInterval.Seconds()):
		return fmt.Errorf("an interval is a number of seconds above 0 and up to %s", words.Decimal(timeline.MaxInterval.Seconds()))
	}
	*s.to = time.Duration(v * float64(time.Second))
	return nil
}

// parsedValue is an option that a function reads.
type parsedValue[T any] struct {
	to    *T
	parse func(text string) (T, error)
	kind  string // as the usage calls it
}

func (v parsedValue[T]) Type() string { return v.kind }
func (parsedValue[T]) String() string { return "" }
func (v parsedValue[T]) Set(text string) (err error) {
	*v.to, err = v.parse(text)
	return err
}

// listValue is an option that is a list, as in svg,html; it replaces the default.
type listValue struct{ to *[]string }

func (l listValue) Type() string   { return "LIST" }
func (l listValue) String() string { return strings.Join(*l.to, ",") }
func (l listValue) Set(text string) error {
	*l.to = nil
	if text != "" {
		*l.to = strings.Split(text, ",")
	}
	return nil
}

// completeLists completes the last word of a list by one of the names.
func completeLists(names []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndexByte(typed, ',')+1]
		var out []cobra.Completion
		for _, name := range names {
			out = append(out, before+name)
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// complete gives an option its completion.
func complete(c *cobra.Command, option string, names []string) {
	if err := c.RegisterFlagCompletionFunc(option, completeLists(names)); err != nil {
		panic(err) // there is no such option: a mistake in this program
	}
}
