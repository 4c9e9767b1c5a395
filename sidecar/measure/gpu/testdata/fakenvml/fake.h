// State of the fake NVML: devices, and their engine activity as a step function.
#ifndef FAKE_H
#define FAKE_H

#include <stdint.h>

enum { MAX_DEVICES = 16, MAX_PROCESSES = 16, MAX_FAILS = 64, MAX_METRICS = 334, MAX_XIDS = 16, NAME_SIZE = 96 };

enum sample_clock { CLOCK_BOOT, CLOCK_WALL, CLOCK_MONO };

// One step of activity: percent from at on. before is the integral of percent
// over nanoseconds up to at.
struct step {
    int64_t at;
    double percent, before;
};

struct process {
    unsigned pid;
    uint64_t bytes;
};

struct device {
    char name[NAME_SIZE], uuid[NAME_SIZE];
    uint64_t total, used;
    int gpm, samples, rates, mig;
    int period_ms; // of its samples and rates; 0: the driver's
    double ratio[MAX_METRICS];
    unsigned watts, sm_mhz, celsius;
    uint64_t throttle;
    struct process processes[MAX_PROCESSES];
    int process_count;
    struct { int64_t at; unsigned code; } xids[MAX_XIDS]; // errors, by CLOCK_MONOTONIC
    int xid_count;
    struct step *steps;
    int step_count, step_room;
    int fed; // the feed has begun to drive it
};

struct fail {
    char function[64];
    int code;
    long from, calls;
};

struct fake {
    char driver[64];
    int init_ms, period_ms, buffer, dry, back_at_ms, back_by_ms;
    enum sample_clock clock;
    struct device devices[MAX_DEVICES];
    int device_count;
    struct fail fails[MAX_FAILS];
    int fail_count;
    int64_t started;      // CLOCK_MONOTONIC of nvmlInit
    int64_t clock_offset; // the samples' clock minus CLOCK_MONOTONIC
    char feed_path[4096];
    long feed_read; // bytes of the feed taken in
};

int64_t now_of(int clock_id);

// script.c
int script_read(struct fake *f, const char *path); // 0, or the number of the line in error
void feed_read(struct fake *f);

// activity.c
void activity_add(struct device *d, int64_t at, double percent);
double activity_mean(const struct device *d, int64_t from, int64_t to);

#endif
