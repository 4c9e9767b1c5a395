/* The floor: a loop that sleeps until the next tick and reads twice 8 KiB of another process, which is
   what any sampler from outside has to do. usage: floor PID ADDRESS RATE; ends when the process does. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    pid_t pid = atoi(argv[1]);
    char *address = (char *)strtoull(argv[2], NULL, 16);
    long interval = 1e9 / atof(argv[3]);
    static char copies[2][8192];
    struct iovec local[2] = {{copies[0], 8192}, {copies[1], 8192}};
    struct iovec remote[2] = {{address, 8192}, {address, 8192}};
    struct timespec next;
    long ticks = 0;
    clock_gettime(CLOCK_MONOTONIC, &next);
    while (process_vm_readv(pid, local, 2, remote, 2, 0) > 0) {
        ticks++;
        next.tv_nsec += interval;
        while (next.tv_nsec >= 1000000000) {
            next.tv_nsec -= 1000000000;
            next.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
    fprintf(stderr, "%ld ticks\n", ticks);
    return 0;
}
