// A program that uses a GPU as its standard input says, line by line, and says what came of it. The libraries
// are its arguments: driver SHIM FAKE FOLDER; the ring is FOLDER/exact-PID.
//
//     begin                                             prints the reason
//     end                                               prints that it ended
//     now                                               prints CLOCK_REALTIME and CLOCK_MONOTONIC
//     record KIND DEVICE STREAM NAME START END BYTES    times on CLOCK_REALTIME, from what now has printed
//     many THREADS NUMBER LENGTH PERIOD                 kernels in so many threads, a stream each, one each PERIOD
//                                                       ns, 0: as fast as can be; prints the first one's start
//     sleep MILLISECONDS | fork
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int (*begin)(const char *);
static void (*end)(void);
static void (*record)(int, uint32_t, uint32_t, const char *, uint64_t, uint64_t, uint64_t);

static uint64_t clock_of(int id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct many { unsigned stream; uint64_t start, number, length, period; };

static void *launch(void *data) {
    struct many m = *(struct many *)data;
    for (uint64_t i = 0; i < m.number; i++) {
        // Work of a device is over before its record is delivered: it is made up to lie in the past.
        uint64_t at = m.start + i * (m.period ? m.period : 1);
        while (m.period && clock_of(CLOCK_REALTIME) < at + m.length)
            if (m.period > 100000)
                usleep(20);
        record(10, 0, m.stream, "many_kernel", at, at + m.length, 0);
    }
    return NULL;
}

int main(int argc, char **argv) {
    void *shim = dlopen(argv[1], RTLD_NOW), *fake = dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL);
    if (argc != 4 || !shim || !fake)
        return fprintf(stderr, "%s\n", dlerror()), 2;
    begin = (int (*)(const char *))dlsym(shim, "omni_perf_exact_begin");
    end = (void (*)(void))dlsym(shim, "omni_perf_exact_end");
    record = (void (*)(int, uint32_t, uint32_t, const char *, uint64_t, uint64_t, uint64_t))dlsym(fake, "fake_record");
    char line[4096], name[2048], ring[4096];
    snprintf(ring, sizeof ring, "%s/exact-%d", argc == 4 ? argv[3] : "", (int)getpid());
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof line, stdin)) {
        unsigned kind, device, stream, threads;
        unsigned long from, to, bytes, milliseconds;
        struct many m;
        if (strcmp(line, "begin\n") == 0)
            printf("%d\n", begin(ring));
        else if (strcmp(line, "end\n") == 0)
            end(), printf("ended\n");
        else if (strcmp(line, "now\n") == 0)
            printf("%lu %lu\n", (unsigned long)clock_of(CLOCK_REALTIME), (unsigned long)clock_of(CLOCK_MONOTONIC));
        else if (sscanf(line, "record %u %u %u %2047s %lu %lu %lu", &kind, &device, &stream, name, &from, &to, &bytes) == 7)
            record((int)kind, device, stream, strdup(name), from, to, bytes);
        else if (sscanf(line, "sleep %lu", &milliseconds) == 1)
            usleep((unsigned)milliseconds * 1000);
        else if (sscanf(line, "many %u %lu %lu %lu", &threads, &m.number, &m.length, &m.period) == 4) {
            pthread_t *running = calloc(threads, sizeof *running);
            struct many *of = calloc(threads, sizeof *of);
            m.start = clock_of(CLOCK_REALTIME) - (m.period ? 0 : m.number + m.length);
            for (unsigned i = 0; i < threads; i++) {
                of[i] = m, of[i].stream = i;
                pthread_create(&running[i], NULL, launch, &of[i]);
            }
            for (unsigned i = 0; i < threads; i++)
                pthread_join(running[i], NULL);
            printf("%lu %lu\n", (unsigned long)m.start, (unsigned long)(clock_of(CLOCK_REALTIME) - m.start));
            free(running), free(of);
        } else if (strcmp(line, "fork\n") == 0) {
            pid_t child = fork();
            if (child == 0) {
                int reason = begin(ring);
                record(10, 0, 9, "of_the_child", 1, 2, 0);
                end();
                _exit(reason == -1 ? 0 : 1); // -EPERM
            }
            int status = 0;
            waitpid(child, &status, 0);
            printf("%d\n", status);
        } else
            return fprintf(stderr, "what is %s", line), 2;
    }
    return 0;
}
