// The NVML functions omni_perf calls, answered from the script and the feed.
// Layouts are those of nvml.h (API 13); only the fields that are used are named.
#include "fake.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, TIMEOUT = 10, UNKNOWN = 999
};

struct utilization { unsigned gpu, memory; };
struct memory { unsigned long long total, free, used; };
struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };
struct sample { unsigned long long timestamp; union { unsigned u; double d; } value; };
struct process_info { unsigned pid; unsigned long long bytes; unsigned gpu_instance, compute_instance; };
struct temperature { unsigned version, sensor; int celsius; };
struct gpm_support { unsigned version, supported; };
struct gpm_sample { int64_t at; struct device *device; };
struct gpm_metric { unsigned id; int result; double value; char *name, *long_name, *unit; };
struct gpm_metrics { unsigned version, count; struct gpm_sample *first, *second; struct gpm_metric metrics[333]; };

// A handle points at its device or, for a MIG instance, at one of these.
struct instance { struct device *parent; int number; };
typedef void *handle;

static struct fake fake;
static struct instance instances[MAX_DEVICES][8];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// enter counts the call, takes the lock and returns what the script wants it to fail with.
static int enter(const char *function) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < fake.fail_count; i++) {
        struct fail *x = &fake.fails[i];
        if (!strcmp(x->function, function) && ++x->calls >= x->from) return x->code;
    }
    feed_read(&fake);
    return SUCCESS;
}

static int leave(int code) {
    pthread_mutex_unlock(&lock);
    return code;
}

#define ENTER()                                     \
    do {                                            \
        int code_ = enter(plain_name(__func__));    \
        if (code_ != SUCCESS) return leave(code_);  \
    } while (0)

// plain_name strips a version suffix, which scripts do not write.
static const char *plain_name(const char *name) {
    static _Thread_local char plain[64];
    snprintf(plain, sizeof plain, "%s", name);
    size_t n = strlen(plain);
    if (n > 3 && plain[n - 3] == '_' && plain[n - 2] == 'v') plain[n - 3] = 0;
    return plain;
}

static struct instance *as_instance(handle h) {
    uintptr_t p = (uintptr_t)h, first = (uintptr_t)instances;
    return p >= first && p < first + sizeof instances ? h : NULL;
}

static struct device *device_of(handle h) {
    struct instance *i = as_instance(h);
    return i ? i->parent : h;
}

int nvmlInit_v2(void) {
    pthread_mutex_lock(&lock);
    int bad = script_read(&fake, getenv("OMNI_PERF_FAKE_NVML"));
    if (bad) {
        fprintf(stderr, "fake NVML: %s: line %d cannot be read\n", getenv("OMNI_PERF_FAKE_NVML"), bad);
        return leave(UNKNOWN);
    }
    for (int d = 0; d < MAX_DEVICES; d++)
        for (int i = 0; i < 8; i++) instances[d][i] = (struct instance){&fake.devices[d], i};
    static const int clocks[] = {CLOCK_BOOTTIME, CLOCK_REALTIME, CLOCK_MONOTONIC};
    fake.clock_offset = now_of(clocks[fake.clock]) - now_of(CLOCK_MONOTONIC);
    int wait = fake.init_ms;
    pthread_mutex_unlock(&lock);
    nanosleep(&(struct timespec){wait / 1000, wait % 1000 * 1000000L}, NULL);
    ENTER();
    return leave(SUCCESS);
}

#ifndef WITHOUT_nvmlSystemGetDriverVersion
int nvmlSystemGetDriverVersion(char *out, unsigned size) {
    ENTER();
    snprintf(out, size, "%s", fake.driver);
    return leave(SUCCESS);
}
#endif

int nvmlDeviceGetCount_v2(unsigned *count) {
    ENTER();
    *count = (unsigned)fake.device_count;
    return leave(SUCCESS);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, handle *out) {
    ENTER();
    if (index >= (unsigned)fake.device_count) return leave(INVALID_ARGUMENT);
    *out = &fake.devices[index];
    return leave(SUCCESS);
}

#ifndef WITHOUT_nvmlDeviceGetUUID
int nvmlDeviceGetUUID(handle h, char *out, unsigned size) {
    ENTER();
    struct instance *i = as_instance(h);
    if (i) snprintf(out, size, "MIG-%s-%d", i->parent->uuid, i->number);
    else snprintf(out, size, "%s", device_of(h)->uuid);
    return leave(SUCCESS);
}
#endif

#ifndef WITHOUT_nvmlDeviceGetName
int nvmlDeviceGetName(handle h, char *out, unsigned size) {
    ENTER();
    snprintf(out, size, as_instance(h) ? "%s MIG" : "%s", device_of(h)->name);
    return leave(SUCCESS);
}
#endif

#ifndef WITHOUT_nvmlDeviceGetMigMode
int nvmlDeviceGetMigMode(handle h, unsigned *current, unsigned *pending) {
    ENTER();
    *current = *pending = device_of(h)->mig > 0;
    return leave(SUCCESS);
}

int nvmlDeviceGetMaxMigDeviceCount(handle h, unsigned *count) {
    ENTER();
    (void)h;
    *count = 7;
    return leave(SUCCESS);
}

int nvmlDeviceGetMigDeviceHandleByIndex(handle h, unsigned index, handle *out) {
    ENTER();
    struct device *d = device_of(h);
    if (index >= (unsigned)d->mig) return leave(NOT_FOUND);
    *out = &instances[d - fake.devices][index];
    return leave(SUCCESS);
}

int nvmlDeviceGetGpuInstanceId(handle h, unsigned *id) {
    ENTER();
    if (!as_instance(h)) return leave(INVALID_ARGUMENT);
    *id = (unsigned)as_instance(h)->number;
    return leave(SUCCESS);
}
#endif

#ifndef WITHOUT_nvmlDeviceGetMemoryInfo
int nvmlDeviceGetMemoryInfo(handle h, struct memory *out) {
    ENTER();
    struct device *d = device_of(h);
    *out = (struct memory){d->total, d->total - d->used, d->used};
    return leave(SUCCESS);
}
#endif

#ifndef WITHOUT_nvmlDeviceGetMemoryInfo_v2
int nvmlDeviceGetMemoryInfo_v2(handle h, struct memory_v2 *out) {
    ENTER();
    struct device *d = device_of(h);
    *out = (struct memory_v2){out->version, d->total, 0, d->total - d->used, d->used};
    return leave(SUCCESS);
}
#endif

static int64_t period_of(const struct device *d) {
    return (int64_t)(d->period_ms ? d->period_ms : fake.period_ms) * 1000000;
}

#ifndef WITHOUT_nvmlDeviceGetUtilizationRates
int nvmlDeviceGetUtilizationRates(handle h, struct utilization *out) {
    ENTER();
    struct device *d = device_of(h);
    if (!d->rates || d->mig) return leave(NOT_SUPPORTED);
    int64_t now = now_of(CLOCK_MONOTONIC), window = period_of(d);
    *out = (struct utilization){(unsigned)lround(activity_mean(d, now - window, now)), 0};
    return leave(SUCCESS);
}
#endif

// Sample k of the buffer is the mean over ((k-1)·period, k·period] since the start.
static int64_t stamp(long k, int64_t period) {
    int64_t at = fake.started + (int64_t)k * period;
    int64_t there = at + fake.clock_offset;
    if (fake.back_by_ms && at >= fake.started + (int64_t)fake.back_at_ms * 1000000)
        there -= (int64_t)fake.back_by_ms * 1000000;
    return there / 1000;
}

#ifndef WITHOUT_nvmlDeviceGetSamples
int nvmlDeviceGetSamples(handle h, int type, unsigned long long last_seen, int *value_type, unsigned *count,
                         struct sample *out) {
    ENTER();
    struct device *d = device_of(h);
    if (!d->samples || d->mig || type != 1) return leave(NOT_SUPPORTED);
    int64_t period = period_of(d);
    long newest = (long)((now_of(CLOCK_MONOTONIC) - fake.started) / period), k = newest - fake.buffer + 1;
    unsigned room = *count, found = 0;
    *value_type = 1;
    for (k = k < 1 ? 1 : k; k <= newest; k++) {
        double mean = activity_mean(d, fake.started + (k - 1) * period, fake.started + k * period);
        unsigned long long at = (unsigned long long)stamp(k, period);
        if (at <= last_seen || (fake.dry && mean == 0)) continue;
        if (out && found < room) out[found] = (struct sample){at, {.u = (unsigned)lround(mean)}};
        if (!out || found < room) found++;
    }
    *count = found;
    return leave(found ? SUCCESS : NOT_FOUND);
}
#endif

#ifndef WITHOUT_nvmlDeviceGetComputeRunningProcesses
int nvmlDeviceGetComputeRunningProcesses_v3(handle h, unsigned *count, struct process_info *out) {
    ENTER();
    struct device *d = device_of(h);
    unsigned room = *count;
    *count = (unsigned)d->process_count;
    if (room < *count) return leave(INSUFFICIENT_SIZE);
    for (int i = 0; i < d->process_count; i++)
        out[i] = (struct process_info){d->processes[i].pid, d->processes[i].bytes, ~0u, ~0u};
    return leave(SUCCESS);
}
#endif

#ifndef WITHOUT_nvmlDeviceGetPowerUsage
int nvmlDeviceGetPowerUsage(handle h, unsigned *milliwatts) {
    ENTER();
    *milliwatts = device_of(h)->watts * 1000;
    return leave(SUCCESS);
}
#endif

#ifndef WITHOUT_nvmlDeviceGetTotalEnergyConsumption
int nvmlDeviceGetTotalEnergyConsumption(handle h, unsigned long long *millijoules) {
    ENTER();
    *millijoules = 5000 + (unsigned long long)((double)device_of(h)->watts * (double)(now_of(CLOCK_MONOTONIC) - fake.started) / 1e6);
    return leave(SUCCESS);
}
#endif

#ifndef WITHOUT_nvmlEventSetCreate
// An event set of one device: which of its errors were delivered.
struct event_set { struct device *device; int delivered; };

int nvmlEventSetCreate(struct event_set **out) {
    ENTER();
    *out = calloc(1, sizeof **out);
    return leave(*out ? SUCCESS : UNKNOWN);
}

int nvmlEventSetFree(struct event_set *set) {
    ENTER();
    free(set);
    return leave(SUCCESS);
}

int nvmlDeviceRegisterEvents(handle h, unsigned long long types, struct event_set *set) {
    ENTER();
    if (!(types & 8)) return leave(NOT_SUPPORTED); // Xid
    set->device = device_of(h);
    while (set->delivered < set->device->xid_count && set->device->xids[set->delivered].at < now_of(CLOCK_MONOTONIC)) set->delivered++;
    return leave(SUCCESS);
}

struct event_data {
    handle device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};

int nvmlEventSetWait_v2(struct event_set *set, struct event_data *out, unsigned timeout_ms) {
    ENTER();
    (void)timeout_ms;
    struct device *d = set->device;
    if (!d || set->delivered >= d->xid_count || d->xids[set->delivered].at > now_of(CLOCK_MONOTONIC)) return leave(TIMEOUT);
    *out = (struct event_data){NULL, 8, d->xids[set->delivered++].code, ~0u, ~0u};
    return leave(SUCCESS);
}
#endif

#ifndef WITHOUT_nvmlDeviceGetClockInfo
int nvmlDeviceGetClockInfo(handle h, int type, unsigned *mhz) {
    ENTER();
    if (type != 1) return leave(NOT_SUPPORTED);
    *mhz = device_of(h)->sm_mhz;
    return leave(SUCCESS);
}
#endif

#ifndef WITHOUT_nvmlDeviceGetTemperatureV
int nvmlDeviceGetTemperatureV(handle h, struct temperature *out) {
    ENTER();
    out->celsius = (int)device_of(h)->celsius;
    return leave(SUCCESS);
}
#endif

#ifndef WITHOUT_nvmlDeviceGetTemperature
int nvmlDeviceGetTemperature(handle h, int sensor, unsigned *celsius) {
    ENTER();
    (void)sensor;
    *celsius = device_of(h)->celsius;
    return leave(SUCCESS);
}
#endif

#ifndef WITHOUT_nvmlDeviceGetCurrentClocksEventReasons
int nvmlDeviceGetCurrentClocksEventReasons(handle h, unsigned long long *reasons) {
    ENTER();
    *reasons = device_of(h)->throttle;
    return leave(SUCCESS);
}
#endif

#ifndef WITHOUT_nvmlGpm
int nvmlGpmQueryDeviceSupport(handle h, struct gpm_support *out) {
    ENTER();
    out->supported = (unsigned)device_of(h)->gpm;
    return leave(SUCCESS);
}

int nvmlGpmSampleAlloc(struct gpm_sample **out) {
    ENTER();
    *out = calloc(1, sizeof **out);
    return leave(*out ? SUCCESS : UNKNOWN);
}

int nvmlGpmSampleFree(struct gpm_sample *s) {
    free(s);
    return SUCCESS;
}

int nvmlGpmSampleGet(handle h, struct gpm_sample *s) {
    ENTER();
    struct device *d = device_of(h);
    if (!d->gpm || (d->mig && !as_instance(h))) return leave(NOT_SUPPORTED);
    *s = (struct gpm_sample){now_of(CLOCK_MONOTONIC), d};
    return leave(SUCCESS);
}

int nvmlGpmMigSampleGet(handle h, unsigned instance, struct gpm_sample *s) {
    ENTER();
    struct device *d = device_of(h);
    if (!d->gpm || instance >= (unsigned)d->mig) return leave(NOT_SUPPORTED);
    *s = (struct gpm_sample){now_of(CLOCK_MONOTONIC), d};
    return leave(SUCCESS);
}

int nvmlGpmMetricsGet(struct gpm_metrics *m) {
    ENTER();
    if (!m->first->device || !m->second->device) return leave(INVALID_ARGUMENT);
    double mean = activity_mean(m->second->device, m->first->at, m->second->at);
    for (unsigned i = 0; i < m->count && i < 333; i++) {
        unsigned id = m->metrics[i].id;
        double ratio = id < MAX_METRICS ? m->second->device->ratio[id] : 0;
        m->metrics[i].result = ratio < 0 ? NOT_SUPPORTED : SUCCESS;
        m->metrics[i].value = ratio * mean;
    }
    return leave(SUCCESS);
}
#endif
