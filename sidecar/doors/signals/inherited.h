// Bit n-1 stands for signal n.
unsigned long long omni_perf_ignored(void);
void omni_perf_default(int sig);
int omni_perf_witness(int until, int out, unsigned long long watched);
