// Command omni-perf profiles Python from outside: notebook cells for the Jupyter
// extension (serve), and whatever else the subcommands below name.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/output"
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
)

// command is a subcommand. It gets the arguments after its name and returns the
// exit code. Each lives in a file of its own.
type command struct {
	name    string
	summary string // one line of the usage
	run     func(args []string) int
}

func commands() []command {
	return []command{
		runCommand(),
		attachCommand(),
		exportCommand(),
		analyzeCommand(),
		makeTracesCommand(),
		doctorCommand(),
		serveCommand(),
		versionCommand(),
	}
}

// exitOf is the exit code of an error.
func exitOf(err error) int {
	var misplaced output.Failures
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &misplaced):
		return exitMisplaced
	}
	return exitFailed
}

func main() { os.Exit(dispatch(os.Args[1:])) }

func dispatch(args []string) int {
	if len(args) == 0 {
		usage(messages)
		return exitUsage
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return c.run(args[1:])
		}
	}
	switch args[0] {
	case "help", "-h", "--help":
		usage(os.Stdout)
		return exitOK
	}
	if isScript(args[0]) {
		return run(args)
	}
	fmt.Fprintf(messages, "omni-perf: there is no command %q.\n", args[0])
	usage(messages)
	return exitUsage
}

// isScript tells "omni-perf train.py" and "omni-perf -o NAME train.py", which
// mean run, from a mistyped command.
func isScript(arg string) bool {
	if strings.HasPrefix(arg, "-") || strings.HasSuffix(arg, ".py") {
		return true
	}
	info, err := os.Stat(arg)
	return err == nil && info.Mode().IsRegular()
}

func usage(w io.Writer) {
	fmt.Fprintln(w, "usage: omni-perf COMMAND …, or omni-perf [options of run] SCRIPT [ARG…]")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-11s %s\n", c.name, c.summary)
	}
}
