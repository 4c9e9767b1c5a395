// A stand-in for libcupti and a driver of programs without a GPU: fake_record does what a device would have
// done, and CUPTI's functions that the shim calls deliver it, as their documentation says (cupti_activity.h).
// OMNI_PERF_FAKE_CUPTI has settings and faults, "version=130401,subscribe=39": see OPTIONS.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))
enum { MEMCPY = 1, MEMSET = 2, KERNEL = 10, OVERHEAD = 17, STRANGE = 41 };
enum { SUCCESS = 0, MAX_LIMIT_REACHED = 12 };

typedef void requested_f(uint8_t **, size_t *, size_t *);
typedef void completed_f(void *, uint32_t, uint8_t *, size_t, size_t);
typedef void requested_f2(uint8_t **, size_t *, size_t *, void *);
typedef void completed_f2(uint8_t *, size_t, size_t, void *);

static requested_f *requested;
static completed_f *completed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int enabled[64], subscribed, by_v2;
static size_t dropped;
static long made;

// The settings: a number each.
#define OPTIONS(X) \
    X(version) X(subscribe) X(enable) X(offset) X(order) X(drop) X(overhead) X(unknown) X(end0) X(backwards) X(kill) \
    X(several) X(others) X(hardware) X(whole)
static struct {
#define DECLARE(name) long name;
    OPTIONS(DECLARE)
} option;

__attribute__((constructor)) static void read_options(void) {
    const char *all = getenv("OMNI_PERF_FAKE_CUPTI");
#define READ(name)                                                                     \
    for (const char *at = all; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : "") \
        if (strncmp(at, #name "=", sizeof #name) == 0)                                 \
            option.name = strtol(at + sizeof #name, NULL, 10);
    OPTIONS(READ)
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec + (uint64_t)option.offset;
}

// A buffer of one thread, as CUPTI has them: it is returned when it is full, or flushed, and all in it is over.
struct buffer { struct buffer *next, **mine; uint8_t *at; size_t size, used; uint64_t over; };
static struct buffer *given; // newest first
static __thread struct buffer *mine; // that this thread writes into; under the lock

static pthread_key_t ending; // of a thread, whose buffer stays

static void leave(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    if (mine)
        mine->mine = NULL;
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void make_key(void) { pthread_key_create(&ending, leave); }

static size_t size_of(uint32_t kind) { // sizeof in the headers of CUDA 11.8, 12.9 and 13.4
    static const size_t sizes[3][4] = {{200, 88, 88, 40}, {208, 96, 88, 56}, {248, 112, 104, 56}};
    long version = option.version;
    int row = version >= 130000 ? 2 : version > 18 ? 1 : 0;
    return sizes[row][kind == KERNEL ? 0 : kind == MEMCPY ? 1 : kind == MEMSET ? 2 : 3];
}

// flush returns what is over; of the buffers that are not full, only if all is asked for.
static void flush(int all) {
    struct buffer *ready = NULL, **last = &ready;
    uint64_t t = now();
    pthread_mutex_lock(&lock);
    for (struct buffer **at = &given, *b; (b = *at);) {
        if ((!all && b->mine) || b->over > t) {
            at = &b->next;
            continue;
        }
        *at = b->next;
        if (b->mine)
            *b->mine = NULL;
        if (option.order) // the newest first
            b->next = NULL, *last = b, last = &b->next;
        else
            b->next = ready, ready = b;
    }
    pthread_mutex_unlock(&lock);
    for (struct buffer *next; ready; ready = next) {
        next = ready->next;
        completed(NULL, 0, ready->at, ready->size, ready->used);
        free(ready);
    }
}

static void *work(void *unused) {
    for (;;) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
        flush(0);
    }
    return unused;
}

static void put(uint8_t *at, size_t offset, const void *value, size_t size) { memcpy(at + offset, value, size); }

// fake_record is a piece of work of a device, with its times on CUPTI's clock, which may be yet to come.
PUBLIC void fake_record(int kind, uint32_t device, uint32_t stream, const char *name, uint64_t start, uint64_t end, uint64_t bytes) {
    if (!enabled[kind])
        return;
    size_t size = size_of((uint32_t)kind);
    pthread_mutex_lock(&lock);
    long n = ++made;
    if (mine && mine->used + 2 * size > mine->size)
        mine->mine = NULL, mine = NULL;
    if (!mine) {
        pthread_mutex_unlock(&lock);
        flush(0); // as CUPTI does in the program's threads, too
        struct buffer *b = calloc(1, sizeof *b);
        size_t most = 0;
        requested(&b->at, &b->size, &most);
        pthread_mutex_lock(&lock);
        if (!b->at || (option.drop && n % option.drop == 0)) {
            dropped++;
            if (!b->at) {
                free(b);
                pthread_mutex_unlock(&lock);
                return;
            }
        }
        pthread_setspecific(ending, b);
        mine = b, b->mine = &mine, b->next = given, given = b;
        if (option.overhead) {
            uint64_t begun = now(), ended = begun + (uint64_t)option.overhead;
            uint32_t what[] = {OVERHEAD, 1 << 16};
            memset(b->at, 0, size_of(OVERHEAD));
            put(b->at, 0, what, 8), put(b->at, 24, &begun, 8), put(b->at, 32, &ended, 8);
            b->used = size_of(OVERHEAD);
        }
    }
    uint8_t *at = mine->at + mine->used;
    mine->used += size;
    if (end > mine->over)
        mine->over = end;
    if (option.unknown && n % option.unknown == 0)
        kind = STRANGE;
    if (option.end0 && n >= option.end0) // B3
        end = 0, start = 0;
    if (option.backwards && n >= option.backwards)
        end = start - 1;
    memset(at, 0, size);
    put(at, 0, &kind, 4), put(at, 16, &start, 8), put(at, 24, &end, 8);
    if (kind == KERNEL)
        put(at, 40, &device, 4), put(at, 48, &stream, 4), put(at, 104, &name, 8);
    else
        put(at, 4, "\1", 1), put(at, 8, &bytes, 8), put(at, 32, &device, 4), put(at, 40, &stream, 4);
    if (mine->used + size > mine->size)
        mine->mine = NULL, mine = NULL;
    pthread_mutex_unlock(&lock);
}

// CUPTI's functions.

PUBLIC int cuptiGetVersion(uint32_t *version) {
    return option.version ? (*version = (uint32_t)option.version, SUCCESS) : 999; // as without a driver
}
// only refuses what a user of one interface asks of the other (B6).
static void only(int v2) {
    if (subscribed && by_v2 != v2)
        abort();
}
PUBLIC int cuptiGetTimestamp(uint64_t *t) { return only(0), *t = now(), SUCCESS; }

PUBLIC int cuptiSubscribe(void **subscriber, void *callback, void *data) {
    (void)callback, (void)data;
    if (option.subscribe)
        return (int)option.subscribe;
    if (subscribed || option.others)
        return 39; // CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
    subscribed++, by_v2 = 0, *subscriber = &subscribed;
    return SUCCESS;
}
PUBLIC int cuptiUnsubscribe(void *subscriber) { return --*(int *)subscriber, SUCCESS; }

PUBLIC int cuptiActivityRegisterCallbacks(requested_f *r, completed_f *c) { return only(0), requested = r, completed = c, SUCCESS; }

static int enable(int kind) {
    if (kind == KERNEL && option.enable)
        return (int)option.enable;
    return enabled[kind] = 1, SUCCESS;
}
static int disable(int kind) {
    while (kind == KERNEL && option.version == 130000) // B2
        pause();
    return enabled[kind] = 0, SUCCESS;
}
PUBLIC int cuptiActivityEnable(int kind) { return only(0), enable(kind); }
PUBLIC int cuptiActivityDisable(int kind) { return only(0), disable(kind); }
PUBLIC int cuptiActivityFlushAll(uint32_t flags) {
    if (flags || option.version == 130000) // forced, it would hand out what is not over; B2
        abort();
    return flush(1), SUCCESS;
}
PUBLIC int cuptiActivityFlushPeriod(uint32_t milliseconds) {
    static int running;
    pthread_t thread;
    if (milliseconds && !running++)
        pthread_create(&thread, NULL, work, NULL);
    return SUCCESS;
}
static int next_record(uint8_t *buffer, size_t valid, uint8_t **record) {
    static _Atomic long read;
    uint32_t kind = 0;
    uint8_t *next = buffer;
    if (*record) {
        memcpy(&kind, *record, 4);
        // STRANGE has the size of a kernel; what it replaced in a test is one
        next = *record + size_of(kind == STRANGE ? KERNEL : kind);
    }
    if (next >= buffer + valid)
        return MAX_LIMIT_REACHED;
    if (option.kill && ++read == option.kill)
        raise(SIGKILL);
    return *record = next, SUCCESS;
}
PUBLIC int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record) {
    return only(0), next_record(buffer, valid, record);
}
static int take_dropped(size_t *number) {
    pthread_mutex_lock(&lock);
    *number = dropped, dropped = 0;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}
PUBLIC int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *number) {
    return (void)context, (void)stream, only(0), take_dropped(number);
}

// The functions for one of several users, of CUDA 13.3 and newer: the library of an older version has them only by name.

struct parameters { size_t size; const char *name; char *first; size_t first_size; uint8_t several, padding[7]; };
static requested_f2 *requested2;
static completed_f2 *completed2;
static void request(uint8_t **buffer, size_t *size, size_t *most) { requested2(buffer, size, most, NULL); }
static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    (void)context, (void)stream, completed2(buffer, size, valid, NULL);
}
static int of(void *subscriber) { // CUPTI_ERROR_INVALID_PARAMETER where it is nobody
    only(1);
    if (subscriber && subscriber != &subscribed)
        abort();
    return subscriber ? SUCCESS : 1;
}

PUBLIC int cuptiSubscribe_v2(void **subscriber, void *callback, void *data, struct parameters *p) {
    (void)callback, (void)data;
    if (p->size != 40 || p->first_size < 64 || !p->several || strlen(p->name) > 53)
        abort();
    if (option.others)
        snprintf(p->first, p->first_size, "CUPTI for torch-cuspy");
    if (option.several != 1 || subscribed)
        return 39;
    subscribed++, by_v2 = 1, *subscriber = &subscribed;
    return SUCCESS;
}
PUBLIC int cuptiGetTimestamp_v2(void *s, uint64_t *t) { return of(s) || (*t = now(), SUCCESS); }
PUBLIC int cuptiActivityRegisterCallbacks_v2(void *s, requested_f2 *r, completed_f2 *c) {
    if (of(s))
        return 1;
    requested2 = r, completed2 = c, requested = request, completed = complete;
    return SUCCESS;
}
PUBLIC int cuptiActivityEnable_v2(void *s, int kind, void *configuration) { return (void)configuration, of(s) ? 1 : enable(kind); }
PUBLIC int cuptiActivityDisable_v2(void *s, int kind, void *configuration) { return (void)configuration, of(s) ? 1 : disable(kind); }
PUBLIC int cuptiActivityGetNextRecord_v2(void *s, uint8_t *buffer, size_t valid, uint8_t **record) {
    return of(s) ? 1 : next_record(buffer, valid, record);
}
PUBLIC int cuptiActivityGetNumDroppedRecords_v2(void *s, void *context, uint32_t stream, size_t *number) {
    return (void)context, (void)stream, of(s) ? 1 : take_dropped(number);
}
PUBLIC int cuptiActivityGetAttribute_v2(void *s, int attribute, size_t *size, void *value) {
    if (of(s) || *size != 1 || (attribute != 13 && attribute != 20))
        return 1;
    *(uint8_t *)value = (uint8_t)(attribute == 13 ? option.hardware : option.whole);
    return SUCCESS;
}

// The driver: several=1 lets CUPTI have several users, several=2 would, but there is one who does not.
PUBLIC int cuDriverGetVersion(int *version) { return *version = option.several ? 13030 : 13020, SUCCESS; }

// cuInit is what the driver does at CUDA's start.
PUBLIC int cuInit(unsigned flags) {
    (void)flags;
    const char *injection = getenv("CUDA_INJECTION64_PATH");
    void *library = injection ? dlopen(injection, RTLD_NOW) : NULL;
    int (*initialize)(void) = library ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
    if (initialize)
        initialize();
    return SUCCESS;
}
