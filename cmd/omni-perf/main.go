// Command omni-perf profiles Python from outside: notebook cells for the Jupyter
// extension (serve), and whatever else its subcommands name.
//
// Each subcommand has a file of its own that defines its options and calls the
// package that does the work.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/omni-perf/omni-perf/sidecar/doors/remote"
	"github.com/omni-perf/omni-perf/sidecar/doors/waiter"
	"github.com/omni-perf/omni-perf/sidecar/show/output"
	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
)

// version is set by the build, -ldflags "-X main.version=…", to that of
// magics/omni_perf/_version.py, the one place where it is written.
var version = "development"

// Exit codes of the command's own; run passes on the script's.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	// exitMisplaced: all was done, but a result is not where it was asked for. The
	// extension knows it, too (magics/omni_perf/program.py).
	exitMisplaced = 3
	// exitExceeded: what --fail-if names has happened. It goes before
	// exitMisplaced, which is reported then, too.
	exitExceeded = 4
)

// exitStatus ends the command with this code and without a word.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

func main() { os.Exit(dispatch(os.Args[1:])) }

func dispatch(args []string) int {
	root := newRoot()
	command, err := root, error(nil)
	places := remote.Places{Messages: messages}
	root.PersistentPreRunE = func(c *cobra.Command, args []string) error {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if v, ok := f.Value.(*onceValue); ok {
				v.given = false // from now on it is we who set it
			}
		})
		if c.Name() == "run" { // its arguments are the script's
			args = nil
		}
		return cmp.Or(places.Arguments(args), places.Options(c.Flags()))
	}
	if args, err = reorder(root, args); err == nil {
		root.SetArgs(args)
		command, err = root.ExecuteC()
	} else {
		command = find(root, "run")
	}
	code := conclude(command, err)
	if err := places.Finish(); err != nil {
		complain(err)
		if code == exitOK {
			code = exitMisplaced
		}
	}
	waiter.Concluded()
	return code
}

// conclude says what went wrong and returns the exit code.
func conclude(command *cobra.Command, err error) int {
	var (
		status    exitStatus
		usage     usageError
		misplaced output.Failures
		exceeded  significance.Exceeded
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &status):
		return int(status)
	case errors.As(err, &usage):
		see := "; see"
		if strings.HasSuffix(err.Error(), "?") {
			see = " See"
		}
		fmt.Fprintf(messages, "%s: %s%s %s --help.\n", command.CommandPath(), err, see, command.CommandPath())
		return exitUsage
	case errors.As(err, &exceeded):
		complain(err)
		return exitExceeded
	case errors.As(err, &misplaced):
		complain(err)
		return exitMisplaced
	}
	complain(err)
	return exitFailed
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:     "omni-perf",
		Long:    "Shows where the time of a Python program went, and why its GPU was idle.",
		Version: version,
		Args: func(root *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			if near := root.SuggestionsFor(args[0]); len(near) > 0 {
				return misuse("there is no command %q; did you mean %s?", args[0], strings.Join(near, " or "))
			}
			return misuse("there is no command %q", args[0])
		},
		RunE:          func(root *cobra.Command, _ []string) error { return root.Help() }, // Args has refused the rest
		SilenceErrors: true, SilenceUsage: true,
		SuggestionsMinimumDistance: 2,
	}
	root.SetOut(os.Stdout)
	root.SetErr(messages)
	root.SetFlagErrorFunc(optionError)
	root.SetUsageFunc(writeUsage)
	root.SetHelpFunc(writeHelp)
	root.SetHelpCommand(&cobra.Command{Use: "help", Hidden: true, RunE: func(c *cobra.Command, args []string) error {
		about, _, err := root.Find(args)
		if err != nil {
			return usageError{err}
		}
		about.InitDefaultHelpFlag()
		return about.Help()
	}})
	root.AddCommand(
		runCommand(), attachCommand(), topCommand(), showCommand(), exportCommand(), mergeCommand(), compareCommand(), analyzeCommand(),
		makeTracesCommand(), mcpCommand(), kernelCommand(), doctorCommand(), serveCommand(), versionCommand(),
	)
	root.InitDefaultCompletionCmd()
	completionCommand(find(root, "completion"))
	for _, c := range append(root.Commands(), root, find(find(root, "kernel"), "install")) {
		c.Flags().SetNormalizeFunc(dashes)
		c.Flags().SortFlags = false
		c.DisableFlagsInUseLine = true
	}
	return root
}

func find(root *cobra.Command, name string) *cobra.Command {
	for _, c := range root.Commands() {
		if c.Name() == name {
			return c
		}
	}
	return nil
}

// reorder makes of the command line one that cobra reads: what names no command
// but a script means run, and "--" ends run's options.
func reorder(root *cobra.Command, args []string) ([]string, error) {
	if len(args) == 0 {
		return args, nil
	}
	run := find(root, "run")
	switch {
	case args[0] == run.Name():
		args = args[1:]
	case find(root, args[0]) != nil || strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) || !isScript(args[0]):
		return args, nil
	}
	run.InitDefaultHelpFlag()
	ours, theirs, err := splitRun(run.Flags(), args)
	return append(append([]string{run.Name()}, ours...), append([]string{"--"}, theirs...)...), err
}

// isScript recognises "omni-perf train.py" and "omni-perf -o NAME train.py", which
// mean run, from a mistyped command.
func isScript(arg string) bool {
	switch arg {
	case "-h", "--help", "--version":
		return false
	}
	if strings.HasPrefix(arg, "-") || strings.HasSuffix(arg, ".py") {
		return true
	}
	info, err := os.Stat(arg)
	return err == nil && info.Mode().IsRegular()
}
