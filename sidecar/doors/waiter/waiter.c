// The process that waits for the program; see doc.go. It is the one that the user has
// started and stays as small as it is here: it never becomes a Go program.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "waiter.h"

// shared is what the profiler lets the waiting process know. Each field is written once.
struct shared {
	volatile int starting;  // the program is about to be started
	volatile int pid;       // of the program; 0 before
	volatile int ended;     // the profiler has waited for it, and it had this status
	volatile int status;
	volatile int concluded; // whatever the profiler's exit status is, it is ours
};

static struct shared *shared; // NULL: nobody waits
static int signals_out = -1;         // the profiler reads from here what the waiting process got
static int signals_in = -1;

static const int relayed[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPWR, SIGIO};
enum { RELAYED = sizeof relayed / sizeof *relayed };

unsigned long long omni_perf_relayed(void) {
	unsigned long long mask = 0;
	for (int i = 0; i < RELAYED; i++)
		mask |= 1ULL << (relayed[i] - 1);
	return mask;
}

int omni_perf_waiter(void) { return shared != NULL; }
int omni_perf_signals(void) { return signals_out; }
void omni_perf_starting(void) {
	if (shared)
		shared->starting = 1;
}
void omni_perf_started(int pid) {
	if (shared)
		shared->pid = pid;
}
void omni_perf_ended(int status) {
	if (shared) {
		shared->status = status;
		shared->ended = 1;
	}
}
void omni_perf_concluded(void) {
	if (shared)
		shared->concluded = 1;
}

static void say(const char *text) {
	char line[512];
	int n = snprintf(line, sizeof line, "omni-perf: %s\n", text);
	if (write(2, line, n < (int)sizeof line ? n : (int)sizeof line - 1) < 0) {
	} // nobody reads it
}

// unprofiled executes the program in place of this process, and returns only the exit code
// where that cannot be.
static int unprofiled(int argc, char **argv) {
	char **program = omni_perf_program(argc, argv);
	if (!program) {
		say("the command line is wrong, and the limits are too small to show what is wrong with it");
		return 2;
	}
	execvp(program[0], program);
	char text[400];
	snprintf(text, sizeof text, "%s cannot be executed: %s", program[0], strerror(errno));
	say(text);
	return 127;
}

// below says which limit is too small for a profiler; the figures were tried, see
// docs/decisions/waiting-process.md.
static int below(char *why, size_t size) {
	static const struct {
		int resource, unit;
		rlim_t least;
		const char *name, *option;
	} floors[] = {
		{RLIMIT_AS, 1024, 2500000, "address space", "v"},
		{RLIMIT_NOFILE, 1, 32, "open files", "n"},
		{RLIMIT_NPROC, 1, 32, "processes and threads", "u"},
	};
	for (size_t i = 0; i < sizeof floors / sizeof *floors; i++) {
		struct rlimit now;
		if (getrlimit(floors[i].resource, &now) != 0 || now.rlim_cur == RLIM_INFINITY || now.rlim_cur / floors[i].unit >= floors[i].least)
			continue;
		if (floors[i].resource == RLIMIT_NPROC && getuid() == 0)
			continue; // not limited
		snprintf(why, size, "nothing is recorded: the limit of %s (ulimit -%s) is %llu and a profiler needs %llu; the program runs without one",
			 floors[i].name, floors[i].option, (unsigned long long)(now.rlim_cur / floors[i].unit), (unsigned long long)floors[i].least);
		return 1;
	}
	return 0;
}

static volatile sig_atomic_t profiler_ended;
static volatile sig_atomic_t program;
static volatile unsigned long long got; // signals that have come, bit n-1 for signal n

static void handle(int sig, siginfo_t *info, void *context) {
	(void)context;
	int before = errno;
	unsigned char byte = (unsigned char)sig;
	got |= 1ULL << (sig - 1);
	if (!profiler_ended) {
		if (write(signals_in, &byte, 1) < 0) {
		} // it has just ended
	} else if (info->si_code <= 0 && program > 0) {
		kill(program, sig); // from a program; what a terminal sends has reached it by itself
	}
	errno = before;
}

static void die_by(int sig) {
	struct rlimit none = {0, 0};
	sigset_t only;
	setrlimit(RLIMIT_CORE, &none); // a core, if there is one, is the program's
	signal(sig, SIG_DFL);
	sigemptyset(&only);
	sigaddset(&only, sig);
	sigprocmask(SIG_UNBLOCK, &only, NULL);
	kill(getpid(), sig);
	_exit(128 + sig); // the first process of a container has outlived it
}

static void end_as(int status) {
	if (WIFSIGNALED(status))
		die_by(WTERMSIG(status));
	_exit(WEXITSTATUS(status));
}

// lost says what the end of the profiler means.
static void lost(int status, const char *then) {
	char text[400];
	snprintf(text, sizeof text, "the profiler has ended (%s %d), and what it recorded is lost%s",
		 WIFSIGNALED(status) ? "signal" : "exit status", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), then);
	say(text);
}

// wait_for waits for the profiler, and for the program where the profiler does not. It
// returns where the program has not been started; else it ends this process.
static void wait_for(int profiler) {
	int theirs = 0, known = 0; // the program's status
	for (;;) {
		int status, pid = waitpid(-1, &status, 0);
		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0) { // cannot be: somebody is left to be waited for
			_exit(127);
		}
		if (pid == shared->pid || (profiler_ended && shared->pid == 0)) {
			theirs = status, known = 1;
		} else if (pid == profiler) {
			int seen = WIFSIGNALED(status) && got & 1ULL << (WTERMSIG(status) - 1);
			if (shared->concluded)
				end_as(status);
			if (shared->ended)
				theirs = shared->status, known = 1;
			else if (!shared->starting && !seen)
				return;
			if (seen && (known || !shared->starting)) // asked to end, as by Ctrl-C
				end_as(status);
			program = shared->pid;
			profiler_ended = 1;
			if (!known && program > 0 && waitpid(program, &theirs, WNOHANG) == program)
				known = 1;
			lost(status, known ? "" : "; the program goes on");
		} // else the program has left an orphan
		if (known && profiler_ended)
			end_as(theirs);
	}
}

// make_pipe makes a pipe that takes no stream's place, where one was closed.
static int make_pipe(int ends[2]) {
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
		return -1;
	for (int i = 0; i < 2; i++) {
		int low = ends[i];
		if (low > 2)
			continue;
		ends[i] = fcntl(low, F_DUPFD_CLOEXEC, 3);
		close(low);
	}
	return ends[0] < 0 || ends[1] < 0 ? -1 : 0;
}

// Constructors run before the Go runtime starts; glibc hands them main's arguments.
#ifdef __GLIBC__
__attribute__((constructor)) static void begin(int argc, char **argv) {
	char why[400];
	if (!omni_perf_means_run(argc, argv))
		return;
	if (below(why, sizeof why)) {
		say(why);
		_exit(unprofiled(argc, argv));
	}
	int ends[2] = {-1, -1};
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || make_pipe(ends) != 0) {
		shared = NULL;
		return;
	}
	sigset_t all, before;
	struct sigaction child, broken, action = {.sa_sigaction = handle, .sa_flags = SA_RESTART | SA_SIGINFO};
	sigfillset(&all);
	sigfillset(&action.sa_mask);
	sigprocmask(SIG_BLOCK, &all, &before);
	int parent = getpid(), profiler = fork();
	if (profiler == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(127);
		close(ends[1]);
		signals_out = ends[0];
		sigprocmask(SIG_SETMASK, &before, NULL);
		return;
	}
	if (profiler < 0) {
		snprintf(why, sizeof why, "nothing is recorded: no process can be started for the profiler (%s); the program runs without one", strerror(errno));
		say(why);
		sigprocmask(SIG_SETMASK, &before, NULL);
		_exit(unprofiled(argc, argv));
	}
	close(ends[0]);
	signals_in = ends[1];
	sigaction(SIGCHLD, NULL, &child);
	sigaction(SIGPIPE, NULL, &broken);
	signal(SIGCHLD, SIG_DFL); // ignored, it would leave nobody to wait for
	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < RELAYED; i++) {
		struct sigaction now;
		if (sigaction(relayed[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
			sigaction(relayed[i], &action, NULL);
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigprocmask(SIG_SETMASK, &before, NULL);
	wait_for(profiler);
	// The profiler has ended before it started anything: do that in its place.
	say("the profiler did not start, and nothing is recorded; the program runs without it");
	sigprocmask(SIG_BLOCK, &all, NULL);
	prctl(PR_SET_CHILD_SUBREAPER, 0);
	sigaction(SIGCHLD, &child, NULL);
	sigaction(SIGPIPE, &broken, NULL);
	sigprocmask(SIG_SETMASK, &before, NULL);
	_exit(unprofiled(argc, argv));
}
#endif
