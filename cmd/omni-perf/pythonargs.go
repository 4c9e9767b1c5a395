package main

import (
	"flag"
	"strings"
)

// splitRun parts the arguments of run: the options that are ours, the options of the
// interpreter, and what is run with its own arguments. As for python, reading stops
// at the script, at -m MODULE, -c CODE or -: the rest belongs to the program. Where a
// letter is both ours and python's (-s), it is ours.
//
//	omni-perf run -o out -X dev -m package.train --epochs 3
//	          ours ^^^^^^ ^^^^^^ python's
//	                             ^^^^^^^^^^^^^^^^^^^^^^^^^^^ the program
func splitRun(flags *flag.FlagSet, args []string) (ours, python, program []string) {
	for len(args) > 0 {
		arg := args[0]
		switch {
		case arg == "--":
			return ours, python, args[1:]
		case arg == "-" || !strings.HasPrefix(arg, "-"):
			return ours, python, args
		case isOurs(flags, arg):
			n := 1
			if !strings.Contains(arg, "=") && !isHelp(arg) && !isSwitch(flags, arg) {
				n = min(2, len(args)) // its value
			}
			ours, args = append(ours, args[:n]...), args[n:]
			continue
		}
		kind, n := pythonOption(args)
		switch kind {
		case pythonFlag:
			python, args = append(python, args[:n]...), args[n:]
		case pythonProgram:
			return ours, python, args
		case pythonNone: // package flag says what is wrong with it
			return append(ours, arg), python, args[1:]
		}
	}
	return ours, python, nil
}

func isHelp(arg string) bool {
	return strings.Trim(arg, "-") == "h" || arg == "--help" || arg == "-help"
}

// isSwitch tells an option of ours that takes no value.
func isSwitch(flags *flag.FlagSet, arg string) bool {
	option := flags.Lookup(strings.TrimLeft(arg, "-"))
	if option == nil {
		return false
	}
	value, ok := option.Value.(interface{ IsBoolFlag() bool })
	return ok && value.IsBoolFlag()
}

// isOurs tells whether flags defines the option: "-o", "--output=x".
func isOurs(flags *flag.FlagSet, arg string) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
	return isHelp(arg) || flags.Lookup(name) != nil
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
