// What the waiting process and the profiler know of each other; see doc.go.
unsigned long long omni_perf_relayed(void);
int omni_perf_waiter(void);
int omni_perf_signals(void);
void omni_perf_starting(void);
void omni_perf_started(int pid);
void omni_perf_ended(int status);
void omni_perf_concluded(void);

// commandline.c

// The command line of the program that `omni-perf run` is to run. NULL where the arguments
// are not understood.
char **omni_perf_program(int argc, char **argv);
// Reports whether the arguments mean `omni-perf run`.
int omni_perf_means_run(int argc, char **argv);
