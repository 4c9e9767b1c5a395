package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// noOption says that there is no such option, and which it may have been meant for.
func noOption(flags *pflag.FlagSet, arg string) error {
	if name, long := strings.CutPrefix(arg, "--"); long {
		name, _, _ = strings.Cut(name, "=")
		if near := nearest(name, optionNames(flags)); near != "" {
			return misuse("there is no option %s; did you mean --%s?", arg, near)
		}
	}
	return misuse("there is no option %s", arg)
}

// optionNames are those that the help lists.
func optionNames(flags *pflag.FlagSet) (names []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

// nearest is the name that a mistyped one is nearest to: by two letters at most, and by less than half of it. Empty: none.
func nearest(typed string, names []string) (near string) {
	least := min(2, (len(typed)-1)/2) + 1
	for _, name := range names {
		if d := distance(strings.ReplaceAll(typed, "_", "-"), name); d < least {
			near, least = name, d
		}
	}
	return near
}

// distance is how many letters have to be put in, taken out, or replaced, or neighbours to change places.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replaced := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// completionCommand makes cobra's command, which lists its shells to whatever follows it, say which there are.
func completionCommand(c *cobra.Command) {
	c.Short = "print the script that completes commands and options in a shell"
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		var shells []string
		for _, sub := range c.Commands() {
			shells = append(shells, sub.Name())
		}
		return misuse("there is none for %q, but for %s", args[0], strings.Join(shells, ", "))
	}
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
}
