package main

import (
	"strings"

	"github.com/spf13/pflag"
)

// splitRun parts the arguments of run: the options that are ours, and those of the
// interpreter with what is run and its own arguments, as python gets them. As for
// python, reading stops at the script, at -m MODULE, -c CODE or -: the rest belongs
// to the program. Where a letter is both ours and python's (-s), it is ours.
//
//	omni-perf run -o out -X dev -m package.train --epochs 3
//	          ours ^^^^^^ ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ python's
func splitRun(flags *pflag.FlagSet, args []string) (ours, python []string, err error) {
	for len(args) > 0 {
		arg := args[0]
		if isProgram(arg) {
			break
		}
		if n := ourOption(flags, args); n > 0 {
			ours, args = append(ours, args[:n]...), args[n:]
			continue
		}
		kind, n := pythonOption(args)
		if kind == pythonNone {
			return ours, python, noOption(flags, arg)
		}
		if kind == pythonProgram {
			break
		}
		python, args = append(python, args[:n]...), args[n:]
	}
	return ours, append(python, args...), nil
}

// isProgram recognises an argument with which the program begins. Python, too, ends its
// options at "--".
func isProgram(arg string) bool { return arg == "-" || arg == "--" || !strings.HasPrefix(arg, "-") }

// partProgram parts the interpreter's own options from what is run with its arguments;
// that is empty where they name nothing to run.
func partProgram(args []string) (options, what []string) {
	at := 0
	for at < len(args) && !isProgram(args[at]) {
		kind, n := pythonOption(args[at:])
		if kind != pythonFlag {
			break
		}
		at += n
	}
	return args[:at:at], args[at:]
}

// ourOption is the number of arguments of the option that args begin with: "-o x",
// "-ox", "--output x", "--output=x"; 0 if it is none of ours.
func ourOption(flags *pflag.FlagSet, args []string) int {
	var f *pflag.Flag
	name, long := strings.CutPrefix(args[0], "--")
	name, _, whole := strings.Cut(name, "=")
	if long {
		f = flags.Lookup(name)
	} else {
		letter := args[0][1]
		if letter < 0x80 {
			f = flags.ShorthandLookup(string(letter))
		}
		whole = len(args[0]) > 2
	}
	switch {
	case f == nil:
		return 0
	case whole || f.NoOptDefVal != "":
		return 1
	}
	return min(2, len(args))
}

type pythonKind int

const (
	pythonNone    pythonKind = iota // no option of python's
	pythonFlag                      // an option, with its value
	pythonProgram                   // what is run: -m or -c, and all that follows
)

// Options of python 3.11 to 3.15 (python --help), but for -s, -h and -V.
const (
	pythonAlone = "bBdEiIOPqSuvx"
	pythonValue = "WX"
	pythonLong  = "--check-hash-based-pycs"
)

// pythonOption reads the option that args begin with, as python's getopt does: -Iu is
// -I -u, and a value may follow at once or as the next argument.
func pythonOption(args []string) (kind pythonKind, length int) {
	arg := args[0]
	if arg == pythonLong {
		return pythonFlag, min(2, len(args))
	}
	if strings.HasPrefix(arg, pythonLong+"=") {
		return pythonFlag, 1
	}
	if strings.HasPrefix(arg, "--") {
		return pythonNone, 0
	}
	for i, letter := range arg[1:] {
		switch {
		case strings.ContainsRune(pythonAlone, letter):
		case strings.ContainsRune(pythonValue, letter):
			if i+2 < len(arg) {
				return pythonFlag, 1
			}
			return pythonFlag, min(2, len(args))
		case letter == 'm' || letter == 'c':
			return pythonProgram, 0
		default:
			return pythonNone, 0
		}
	}
	return pythonFlag, 1
}
