// What only C can see: the dispositions of signals before the Go runtime installs
// its own handlers, and a process that is us but for what it does.

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inherited.h"

static unsigned long long ignored;

// Constructors run before the Go runtime starts.
__attribute__((constructor)) static void look(void) {
	for (int sig = 1; sig <= 64; sig++) {
		struct sigaction action;
		if (sigaction(sig, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
			ignored |= 1ULL << (sig - 1);
	}
}

unsigned long long omni_perf_ignored(void) { return ignored; }

void omni_perf_default(int sig) {
	sigset_t only;
	signal(sig, SIG_DFL);
	sigemptyset(&only);
	sigaddset(&only, sig);
	pthread_sigmask(SIG_UNBLOCK, &only, NULL);
}

static void tell(int sig) {
	int before = errno;
	unsigned char byte = (unsigned char)sig;
	if (write(1, &byte, 1) < 0) {
	} // nobody listens any more
	errno = before;
}

// The child of a process with threads may call async-signal-safe functions only.
static void witness(int until, int out, unsigned long long watched) {
	struct sigaction action = {.sa_flags = SA_RESTART};
	sigemptyset(&action.sa_mask);
	for (int sig = 1; sig <= 64; sig++) {
		if (ignored & 1ULL << (sig - 1))
			continue;
		action.sa_handler = watched & 1ULL << (sig - 1) ? tell : SIG_DFL;
		sigaction(sig, &action, NULL); // refused for some, which keep their default
	}
	// No stream of ours may be held open by it.
	int low = dup2(until, 0) == 0 && dup2(out, 1) == 1;
#ifdef SYS_close_range
	if (low && syscall(SYS_close_range, 2, ~0U, 0) == 0)
		low = 2;
#endif
	if (low == 1)
		for (int fd = 2; fd < 4096; fd++)
			close(fd);
	if (!low)
		_exit(1);
	prctl(PR_SET_NAME, "omni-perf:sig");
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	tell(0); // ready
	for (;;) {
		char byte;
		ssize_t n = read(0, &byte, 1);
		if (n == 0 || (n < 0 && errno != EINTR))
			_exit(0); // we have ended
	}
}

int omni_perf_witness(int until, int out, unsigned long long watched) {
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before); // Go's handlers must not run in the child
	int pid = fork();
	if (pid == 0)
		witness(until, out, watched);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pid;
}
