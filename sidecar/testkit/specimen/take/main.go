// Command take runs the programs of sidecar/testkit/specimen/programs under the real
// collectors and keeps their recordings:
//
//	go build -o /tmp/take ./sidecar/testkit/specimen/take
//	/tmp/take -programs sidecar/testkit/specimen/programs -into sidecar/testkit/specimen/testdata [NAME…]
//
// A NAME may have stars: "import*".
//
// SPECIMEN_PYTHONS lists the interpreters to choose from, separated by colons; the
// first that has the modules a program needs is taken. They need ipykernel,
// jupyter_client and what the extension imports.
//
// "take show FILE…" prints what is said of kept recordings.
//
// It is its own sidecar: the extension in the kernel starts it by $OMNI_PERF_BINARY
// as "take serve", and scripts are run by "take run".
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/testkit/specimen"
)

func main() {
	if len(os.Args) > 1 && (os.Args[1] == "serve" || os.Args[1] == "run") {
		os.Exit(frontDoor(os.Args[1], os.Args[2:]))
	}
	if len(os.Args) > 2 && os.Args[1] == "show" {
		if err := show(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "take:", err)
			os.Exit(1)
		}
		return
	}
	programs := flag.String("programs", "sidecar/testkit/specimen/programs", "folder of the tables")
	into := flag.String("into", "sidecar/testkit/specimen/testdata", "folder for the recordings")
	repository := flag.String("repository", ".", "root of the checkout")
	missing := flag.Bool("missing", false, "only programs that have no recording yet")
	trainings := flag.String("trainings", "", "take trainings instead, from this folder: NAME is VARIANT:STEP_MS:SECONDS")
	flag.Parse()
	// To wait for the signal also means that programs get it: what is started in the
	// background ignores it, and so would they.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *trainings != "" {
		if err := takeTrainings(ctx, *trainings, *into, *repository, flag.Args()); err != nil {
			fmt.Fprintln(os.Stderr, "take:", err)
			os.Exit(1)
		}
		return
	}
	if err := take(ctx, *programs, *into, *repository, *missing, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "take:", err)
		os.Exit(1)
	}
}

func take(ctx context.Context, folder, into, repository string, missing bool, names []string) error {
	list, err := specimen.Load(folder)
	if err != nil {
		return err
	}
	studio, err := newStudio(repository)
	if err != nil {
		return err
	}
	defer studio.close()
	var failed []string
	for _, p := range list {
		path := filepath.Join(into, p.File())
		if _, err := os.Stat(path); len(names) > 0 && !matches(p.Name, names) || missing && err == nil {
			continue
		}
		switch err := studio.take(ctx, p, path); {
		case err == nil:
			fmt.Println("took", p.Name)
		default:
			fmt.Printf("FAILED %s: %v\n", p.Name, err)
			failed = append(failed, p.Name)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d not taken: %s", len(failed), strings.Join(failed, ", "))
	}
	return nil
}

// takeTrainings runs trainings on the simulated devices.
func takeTrainings(ctx context.Context, folder, into, repository string, names []string) error {
	studio, err := newStudio(repository)
	if err != nil {
		return err
	}
	defer studio.close()
	for _, name := range names {
		var variant string
		var step, seconds float64
		if _, err := fmt.Sscanf(strings.ReplaceAll(name, ":", " "), "%s %g %g", &variant, &step, &seconds); err != nil {
			return fmt.Errorf("%q is no VARIANT:STEP_MS:SECONDS", name)
		}
		p, err := specimen.Training(folder, variant, time.Duration(step*1e6), time.Duration(seconds*1e9))
		if err != nil {
			return err
		}
		if err := studio.take(ctx, p, filepath.Join(into, p.File())); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Println("took", name)
	}
	return nil
}

func matches(name string, wanted []string) bool {
	for _, w := range wanted {
		if ok, _ := path.Match(w, name); ok || w == name {
			return true
		}
	}
	return false
}

// has reports whether an interpreter can import all modules.
func has(python string, modules []string) bool {
	code := "import importlib.util, sys; sys.exit(any(importlib.util.find_spec(m) is None for m in sys.argv[1:]))"
	return exec.Command(python, append([]string{"-c", code}, modules...)...).Run() == nil
}
