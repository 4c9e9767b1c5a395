// Bit n-1 stands for signal n.
unsigned long long omni_perf_ignored(void);
void omni_perf_default(int sig);
