// What only C can see: the dispositions of signals before the Go runtime installs
// its own handlers.

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

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
