package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/omni-perf/omni-perf/sidecar/doors/kernelspec"
	"github.com/omni-perf/omni-perf/sidecar/doors/python"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

func kernelCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "kernel",
		Short: "register a kernel in which every cell is profiled",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return misuse("there is no command %q; omni-perf kernel install installs one, jupyter kernelspec remove removes it", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(kernelInstallCommand())
	return c
}

func kernelInstallCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "install [options]",
		Short: "install one with Jupyter",
		Long: `Registers a kernel with Jupyter that is another one with omni_perf in it: every cell is
profiled, and one that takes long shows its chart, as after "%omni_perf on". It is
installed into the environment of the interpreter, else for the user.`,
		Args: noArguments,
	}
	r := kernelspec.Request{Kernel: "python3"}
	threshold := time.Second
	c.Flags().StringVar(&r.Kernel, "kernel", r.Kernel, "the `KERNEL` to wrap, by its name in jupyter kernelspec list")
	c.Flags().StringVar(&r.Name, "name", "", "`NAME` of the new one (default KERNEL-omni_perf)")
	c.Flags().StringVar(&r.DisplayName, "display-name", "", "`NAME` that menus show (default: KERNEL's, with omni_perf)")
	c.Flags().VarP(secondsValue{&threshold, true}, "threshold", "t", "`SECONDS` from which on a cell shows its chart")
	c.Flags().BoolVar(&r.User, "user", false, "install it for the user, not into the interpreter's environment")
	c.Flags().StringVar(&r.Prefix, "prefix", "", "install it into the environment in this `FOLDER`")
	named := c.Flags().String("interpreter", "", "the `PYTHON` that has Jupyter (default the active environment's or python3 on PATH, else the one beside omni-perf)")
	c.RunE = func(*cobra.Command, []string) error {
		if r.User && r.Prefix != "" {
			return misuse("--user and --prefix are two places; leave out one of them")
		}
		r.Options = "-t " + words.Decimal(threshold.Seconds())
		interpreters, err := python.Candidates(*named)
		if err != nil {
			return err
		}
		k, err := kernelspec.Install(interpreters, r)
		if err != nil {
			return err
		}
		if k.Missing != "" {
			fmt.Fprintf(plainText{os.Stdout}, "omni-perf: %s; it is installed by %s, beside omni-perf; --interpreter names another\n", k.Missing, k.Interpreter)
		}
		fmt.Fprintf(plainText{os.Stdout}, "omni-perf: installed the kernel %q in %s; jupyter kernelspec remove %s removes it\n", k.DisplayName, k.Place, k.Name)
		return nil
	}
	return c
}
