// Reading of the script and of the feed; README.md has the statements.
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const uint64_t MIB = 1 << 20;

static struct device *add_device(struct fake *f, const char *name) {
    if (f->device_count >= MAX_DEVICES) return NULL;
    struct device *d = &f->devices[f->device_count];
    snprintf(d->name, sizeof d->name, strstr(name, "simulated") ? "%s" : "%.80s (simulated)", name);
    snprintf(d->uuid, sizeof d->uuid, "GPU-fake-%d", f->device_count++);
    d->total = 81920 * MIB;
    d->used = 512 * MIB;
    d->samples = d->rates = 1;
    d->watts = 100;
    d->sm_mhz = 1500;
    d->celsius = 45;
    d->ratio[1] = 1;
    d->ratio[2] = 0.8;
    d->ratio[3] = 0.5;
    d->ratio[5] = 0.3;
    d->ratio[10] = 0.4;
    d->ratio[20] = d->ratio[21] = 10;
    return d;
}

static int global_statement(struct fake *f, const char *word, const char *rest) {
    struct { const char *word; int *value; } numbers[] = {
        {"init_ms", &f->init_ms}, {"period_ms", &f->period_ms}, {"buffer", &f->buffer}, {"dry", &f->dry},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!strcmp(word, numbers[i].word)) return sscanf(rest, "%d", numbers[i].value) == 1;
    if (!strcmp(word, "driver")) return sscanf(rest, "%63s", f->driver) == 1;
    if (!strcmp(word, "back")) return sscanf(rest, "%d %d", &f->back_at_ms, &f->back_by_ms) == 2;
    if (!strcmp(word, "clock")) {
        if (!strncmp(rest, "boot", 4)) f->clock = CLOCK_BOOT;
        else if (!strncmp(rest, "wall", 4)) f->clock = CLOCK_WALL;
        else if (!strncmp(rest, "mono", 4)) f->clock = CLOCK_MONO;
        else return 0;
        return 1;
    }
    if (!strcmp(word, "fail")) {
        if (f->fail_count >= MAX_FAILS) return 0;
        struct fail *x = &f->fails[f->fail_count++];
        x->from = 1;
        return sscanf(rest, "%63s %d %ld", x->function, &x->code, &x->from) >= 2;
    }
    if (!strcmp(word, "device")) return add_device(f, rest) != NULL;
    return 0;
}

static int device_statement(struct fake *f, struct device *d, const char *word, const char *rest) {
    struct { const char *word; void *value; } numbers[] = {
        {"gpm", &d->gpm}, {"samples", &d->samples}, {"rates", &d->rates}, {"mig", &d->mig},
        {"period_ms", &d->period_ms},
        {"power", &d->watts}, {"sm_mhz", &d->sm_mhz}, {"temperature", &d->celsius},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!strcmp(word, numbers[i].word)) return sscanf(rest, "%d", (int *)numbers[i].value) == 1;
    double a, b;
    unsigned long long x, y;
    if (!strcmp(word, "uuid")) return sscanf(rest, "%95s", d->uuid) == 1;
    if (!strcmp(word, "throttle")) {
        d->throttle = strtoull(rest, NULL, 0);
        return 1;
    }
    if (!strcmp(word, "memory")) {
        if (sscanf(rest, "%llu %llu", &x, &y) != 2) return 0;
        d->total = x * MIB;
        d->used = y * MIB;
        return 1;
    }
    if (!strcmp(word, "util")) {
        if (sscanf(rest, "%lf %lf", &a, &b) != 2) return 0;
        activity_add(d, f->started + (int64_t)(a * 1e6), b);
        return 1;
    }
    if (!strcmp(word, "xid")) {
        if (d->xid_count >= MAX_XIDS || sscanf(rest, "%lf %llu", &a, &x) != 2) return 0;
        d->xids[d->xid_count].at = f->started + (int64_t)(a * 1e6);
        d->xids[d->xid_count++].code = (unsigned)x;
        return 1;
    }
    if (!strcmp(word, "ratio")) {
        if (sscanf(rest, "%llu %lf", &x, &a) != 2 || x >= MAX_METRICS) return 0;
        d->ratio[x] = a;
        return 1;
    }
    if (!strcmp(word, "process")) {
        if (d->process_count >= MAX_PROCESSES) return 0;
        struct process *p = &d->processes[d->process_count++];
        if (sscanf(rest, "self %llu", &x) == 1) p->pid = (unsigned)getpid();
        else if (sscanf(rest, "%u %llu", &p->pid, &x) != 2) return 0;
        p->bytes = x * MIB;
        return 1;
    }
    return 0;
}

int script_read(struct fake *f, const char *path) {
    for (int i = 0; i < f->device_count; i++) free(f->devices[i].steps);
    memset(f, 0, sizeof *f);
    strcpy(f->driver, "550.00");
    f->period_ms = 167;
    f->buffer = 120;
    f->started = now_of(CLOCK_MONOTONIC);
    const char *feed = getenv("OMNI_PERF_FAKE_NVML_FEED");
    snprintf(f->feed_path, sizeof f->feed_path, "%s", feed ? feed : "");
    if (!path || !*path) {
        add_device(f, "Demo GPU (simulated)")->gpm = 1;
        return 0;
    }
    FILE *in = fopen(path, "r");
    if (!in) return -1;
    char line[512], word[32];
    int number = 0, bad = 0;
    while (!bad && fgets(line, sizeof line, in)) {
        number++;
        line[strcspn(line, "#\r\n")] = 0;
        int used = 0;
        if (sscanf(line, " %31s %n", word, &used) < 1) continue;
        struct device *d = f->device_count ? &f->devices[f->device_count - 1] : NULL;
        if (!(d && device_statement(f, d, word, line + used)) && !global_statement(f, word, line + used)) bad = number;
    }
    fclose(in);
    return bad;
}

static void feed_line(struct fake *f, const char *line) {
    long long at;
    unsigned gpu, pid;
    double percent;
    unsigned long long mib;
    if (sscanf(line, "process %u %u %llu", &pid, &gpu, &mib) == 3 && gpu < (unsigned)f->device_count) {
        struct device *d = &f->devices[gpu];
        int i = 0;
        while (i < d->process_count && d->processes[i].pid != pid) i++;
        if (i == MAX_PROCESSES) return;
        if (i == d->process_count) d->processes[d->process_count++].pid = pid;
        d->used += mib * MIB - d->processes[i].bytes;
        d->processes[i].bytes = mib * MIB;
    } else if (sscanf(line, "%lld %u %lf", &at, &gpu, &percent) == 3 && gpu < (unsigned)f->device_count) {
        struct device *d = &f->devices[gpu];
        if (!d->fed) { // what the script said no longer counts
            d->fed = 1;
            d->step_count = 0;
        }
        activity_add(d, at, percent);
    }
}

void feed_read(struct fake *f) {
    if (!*f->feed_path) return;
    FILE *in = fopen(f->feed_path, "r");
    if (!in) return;
    fseek(in, 0, SEEK_END);
    if (ftell(in) < f->feed_read) f->feed_read = 0; // begun anew
    fseek(in, f->feed_read, SEEK_SET);
    char line[256];
    while (fgets(line, sizeof line, in)) {
        size_t n = strlen(line);
        if (line[n - 1] != '\n') break; // still being written
        f->feed_read += (long)n;
        feed_line(f, line);
    }
    fclose(in);
}
