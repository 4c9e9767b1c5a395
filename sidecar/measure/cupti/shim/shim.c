// Records what the GPU does, from within a process that uses CUDA: kernels, copies and fills with their
// times, by CUPTI's activity records. docs/exact.md says when it is loaded and what it costs.
//
// It starts no thread and calls no Python. CUPTI calls requested and completed in threads of its own and of
// the program; one lock lets one of them at a time write into the ring, so that the ring has one writer.
// Nothing of CUPTI's is called in them but what reads a buffer, as CUPTI demands. A child of fork does nothing.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "interface.h"
#include "ring.h"

#define PUBLIC __attribute__((visibility("default")))
#define SECOND 1000000000ull

static struct {
#define DECLARE(name, arguments) int (*name) arguments;
    FUNCTIONS(DECLARE) FUNCTIONS_OF_SEVERAL(DECLARE)
} cupti;

// What a version of CUPTI may be used for; docs/exact.md has the same table, with the sources of each row.
static const struct mode {
    uint32_t from; // cuptiGetVersion
    int allowed;
    uint64_t most_records; // of one process; 0: any number
    uint64_t most_s;       // in which it records, of one process; 0: any number
} modes[] = {
    {0, 0, 0, 0},                // before CUDA 11.1: no periodic flush
    {14, 1, 20000000, 600},      // CUDA 11.1 to 12: the CPU time it takes grows in long recordings
    {130000, 0, 0, 0},           // 13.0: Disable deadlocks, FlushAll crashes
    {130001, 1, 5000000, 600},   // 13.0 Update 1: after many records their times become 0 or run backwards
    {130200, 0, 0, 0},           // 13.2: each call slows the program
    {130300, 1, 20000000, 600},  // 13.3: as CUDA 12
    {130401, 1, 0, 0},           // 13.4 Update 1
};

// LAUNCH_NS is what recording one activity is taken to cost the program beside what OVERHEAD records say.
enum { MOST_COST = 50 }; // one part in so many
enum { LAUNCH_NS = 1000, BUFFER = 64 << 10, MOST_BUFFERS = 1024, LONGEST_NAME = 1000, NAME_SLOTS = 1 << 14 };
static const uint64_t settle = SECOND / 10; // at a rest's edges: work under way that is half recorded
static const uint64_t burst = SECOND / 4, longest_rest = 10 * SECOND;

// held is in front of each buffer.
struct held {
    struct held *previous, *next;
    uint64_t since; // CLOCK_MONOTONIC at which CUPTI got it
    uint64_t unused[5];
};
_Static_assert(sizeof(struct held) == 64, "buffers are aligned");

static pthread_mutex_t calls = PTHREAD_MUTEX_INITIALIZER; // begin and end
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // everything below
static volatile int forked;
static struct ring *ring;
static char ring_path[4096];
static struct record *records;
static char *names;
static struct { const char *of; uint32_t at; } interned[NAME_SLOTS];
static uint64_t next; // ring->head, before it is published
static struct { uint64_t count, from, until; } lost;
static struct held out = {&out, &out, 0, {0}}, spare; // buffers that CUPTI has, oldest first; those it gave back
static unsigned buffers;
static const struct mode *mode;
static void *subscriber;
static int several;         // it is one of several
static int on;              // between begin and end
static enum reason stopped; // why it is over for good in this process
static int opened;          // there was an OPEN without a SHUT
static uint64_t rest_until, window_since, window_cost, completed_at, began_at, before_ns;

static uint64_t read_clock(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}
static uint64_t monotonic(void) { return read_clock(CLOCK_MONOTONIC); }

static uint32_t u32(const uint8_t *at) { uint32_t v; memcpy(&v, at, sizeof v); return v; }
static uint64_t u64(const uint8_t *at) { uint64_t v; memcpy(&v, at, sizeof v); return v; }
static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
static void count(_Atomic uint64_t *what, uint64_t by) {
    atomic_store_explicit(what, atomic_load_explicit(what, memory_order_relaxed) + by, memory_order_relaxed);
}

// CUPTI as one of several users, or as the only one.
static int enable(int kind) { return several ? cupti.ActivityEnable_v2(subscriber, kind, NULL) : cupti.ActivityEnable(kind); }
static int disable(int kind) { return several ? cupti.ActivityDisable_v2(subscriber, kind, NULL) : cupti.ActivityDisable(kind); }
static int timestamp(uint64_t *t) { return several ? cupti.GetTimestamp_v2(subscriber, t) : cupti.GetTimestamp(t); }
static int following(uint8_t *buffer, size_t valid, uint8_t **at) {
    return several ? cupti.ActivityGetNextRecord_v2(subscriber, buffer, valid, at) : cupti.ActivityGetNextRecord(buffer, valid, at);
}
static int misses(void *context, uint32_t stream, size_t *n) {
    return several ? cupti.ActivityGetNumDroppedRecords_v2(subscriber, NULL, 0, n) : cupti.ActivityGetNumDroppedRecords(context, stream, n);
}

// The ring. The lock is held in all of these.

// slot returns where the next record goes, or NULL where fewer than so many free ones would be left.
static struct record *slot(uint64_t left) {
    uint64_t used = next - atomic_load_explicit(&ring->tail, memory_order_acquire);
    return used + left < RING_RECORDS ? &records[next & (RING_RECORDS - 1)] : NULL;
}

static void publish(void) { atomic_store_explicit(&ring->head, next, memory_order_release); }

static void mark(enum kind kind, uint64_t start, uint64_t end, uint64_t number) {
    struct record *r = slot(0);
    if (!r) {
        atomic_store_explicit(&ring->blind, 1, memory_order_relaxed);
        return;
    }
    *r = (struct record){.start = start, .end = end, .number = number, .kind = (uint16_t)kind};
    next++;
    publish();
}

static void mark_lost(void) {
    mark(LOST, lost.from, lost.until, lost.count);
    lost.count = 0;
}

static uint64_t pending_since(void) { return out.next == &out ? 0 : out.next->since; }

// edge begins or ends a stretch in which everything is recorded.
static void edge(enum kind kind, uint64_t at) {
    if (opened != (kind == OPEN))
        mark(kind, at, 0, 0);
    opened = kind == OPEN;
}

static void stop(enum reason reason, uint64_t complete_until) {
    if (stopped)
        return;
    stopped = reason, on = 0;
    edge(SHUT, pending_since() ? least(complete_until, pending_since()) : complete_until);
    mark(WHY, 0, 0, reason);
}

// name returns where a kernel's name is among the names: each is copied once. CUPTI keeps the string as long as
// the kernel's module is loaded; another module may get its address, so that the text is compared.
static uint32_t name(const char *of) {
    if (!of)
        return 0;
    size_t at = ((uintptr_t)of >> 3) * 0x9e3779b97f4a7c15ull >> 50;
    for (unsigned tries = 0; tries < 8; tries++, at = (at + 1) & (NAME_SLOTS - 1)) {
        if (interned[at].of && interned[at].of != of)
            continue;
        if (interned[at].of && strncmp(names + interned[at].at, of, LONGEST_NAME) == 0)
            return interned[at].at;
        uint64_t used = atomic_load_explicit(&ring->names_used, memory_order_relaxed);
        size_t length = strnlen(of, LONGEST_NAME);
        if (used + length + 1 > RING_NAMES)
            return 0;
        memcpy(names + used, of, length); // the file's end follows: zeros
        atomic_store_explicit(&ring->names_used, used + length + 1, memory_order_relaxed);
        interned[at].of = of;
        return interned[at].at = (uint32_t)used;
    }
    return 0;
}

// take reads one activity; 0 where its times show that no more can be relied on.
static int take(const uint8_t *activity) {
    uint32_t kind = u32(activity);
    if (kind == OVERHEAD) {
        uint32_t whose = u32(activity + OVERHEAD_KIND);
        uint64_t start = u64(activity + OVERHEAD_START), end = u64(activity + OVERHEAD_END);
        if (end > start && (whose == BUFFER_FLUSH || whose == INSTRUMENTATION || whose == RESOURCE)) {
            count(&ring->overhead_ns, end - start);
            window_cost += end - start;
        }
        return 1;
    }
    if (kind != KERNEL && kind != MEMCPY && kind != MEMSET) {
        count(&ring->unknown, 1);
        return 1;
    }
    uint64_t start = u64(activity + START), end = u64(activity + END);
    if (start == 0 || end < start)
        return 0;
    count(&ring->taken, 1);
    window_cost += LAUNCH_NS;
    struct record *r = slot(RING_SPARE);
    if (!r) {
        lost.from = lost.count ? least(lost.from, start) : start;
        lost.until = lost.count && lost.until > end ? lost.until : end;
        lost.count++;
        count(&ring->lost, 1);
        return 1;
    }
    if (lost.count) {
        mark_lost();
        r = &records[next & (RING_RECORDS - 1)]; // of the spare ones
    }
    *r = (struct record){.start = start, .end = end, .kind = (uint16_t)kind};
    r->device = u32(activity + (kind == KERNEL ? KERNEL_DEVICE : COPY_DEVICE));
    r->stream = u32(activity + (kind == KERNEL ? KERNEL_STREAM : COPY_STREAM));
    if (kind == KERNEL)
        r->name = name((const char *)(uintptr_t)u64(activity + KERNEL_NAME));
    else if (kind == MEMCPY)
        r->copy = activity[COPY_KIND];
    next++;
    return 1;
}

// govern lets a burst that cost more than 2 % be followed by a rest, so that both together cost that.
static void govern(uint64_t now) {
    uint64_t elapsed = now - window_since, rest = 0;
    if (on && mode->most_records && atomic_load_explicit(&ring->taken, memory_order_relaxed) >= mode->most_records)
        stop(MOST_RECORDS, now - settle);
    if (on && mode->most_s && before_ns + now - began_at >= mode->most_s * SECOND)
        stop(MOST_SECONDS, now - settle);
    if (!on || elapsed < burst || now < rest_until)
        return;
    if (window_cost * MOST_COST > elapsed) {
        rest = least(window_cost * MOST_COST - elapsed, longest_rest);
        rest_until = now + rest;
        count(&ring->rests, 1);
    }
    window_since = now + rest, window_cost = 0;
}

// CUPTI's callbacks.

static void requested(uint8_t **buffer, size_t *size, size_t *most) {
    *buffer = NULL, *size = 0, *most = 0; // which CUPTI takes for: no buffer, drop it
    if (forked)
        return;
    pthread_mutex_lock(&lock);
    uint64_t now = monotonic();
    struct held *h = NULL;
    if (on && atomic_load_explicit(&ring->halt, memory_order_relaxed))
        stop(DEVICE_MEMORY, now - settle);
    if (on && now >= rest_until) {
        if ((h = spare.next))
            spare.next = h->next;
        else if (buffers < MOST_BUFFERS && (h = aligned_alloc(64, sizeof *h + BUFFER)))
            buffers++;
        else
            rest_until = now + burst;
    }
    if (h) {
        if (rest_until)
            edge(OPEN, now + settle);
        rest_until = 0;
        *h = (struct held){.previous = out.previous, .next = &out, .since = now};
        out.previous->next = h, out.previous = h;
        atomic_store_explicit(&ring->pending_since, pending_since(), memory_order_relaxed);
        *buffer = (uint8_t *)(h + 1), *size = BUFFER;
    } else if (on) {
        edge(SHUT, now - settle);
    }
    pthread_mutex_unlock(&lock);
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    (void)size;
    if (forked)
        return;
    uint64_t began = monotonic(), cpu = read_clock(CLOCK_THREAD_CPUTIME_ID); // not what other programs take of it
    pthread_mutex_lock(&lock);
    struct held *h = out.next;
    while (h != &out && (uint8_t *)(h + 1) != buffer)
        h = h->next;
    if (h == &out) { // of a profiler that was here before
        pthread_mutex_unlock(&lock);
        return;
    }
    uint8_t *activity = NULL;
    if (!stopped)
        while (valid && following(buffer, valid, &activity) == SUCCESS)
            if (!take(activity)) {
                stop(BAD_TIMES, completed_at);
                break;
            }
    size_t dropped = 0;
    if (misses(context, stream, &dropped) == SUCCESS && dropped && opened) {
        count(&ring->dropped, dropped);
        mark(MISSED, completed_at, began, dropped);
    }
    h->previous->next = h->next, h->next->previous = h->previous;
    h->next = spare.next, spare.next = h;
    atomic_store_explicit(&ring->pending_since, pending_since(), memory_order_relaxed);
    publish();
    completed_at = monotonic();
    cpu = read_clock(CLOCK_THREAD_CPUTIME_ID) - cpu;
    count(&ring->callback_ns, cpu);
    window_cost += cpu;
    govern(completed_at);
    pthread_mutex_unlock(&lock);
}

static void requested2(uint8_t **buffer, size_t *size, size_t *most, void *info) { (void)info, requested(buffer, size, most); }
static void completed2(uint8_t *buffer, size_t size, size_t valid, void *info) { (void)info, completed(NULL, 0, buffer, size, valid); }
static void nothing(void *data, int domain, uint32_t id, const void *info) { (void)data, (void)domain, (void)id, (void)info; }

// Finding and starting it.

// search looks for a library where pip would have put it beside what the process has loaded.
struct search { const char *wanted; char found[4096]; };

static int beside(struct dl_phdr_info *info, size_t size, void *data) {
    struct search *s = data;
    char pattern[4096];
    const char *path = info->dlpi_name, *site = strstr(path, "-packages/"); // site-, dist-
    glob_t files = {0};
    int length = site ? (int)(site + 10 - path) : 0;
    (void)size;
    if (site && snprintf(pattern, sizeof pattern, "%.*snvidia/*/lib/%s", length, path, s->wanted) < (int)sizeof pattern &&
        glob(pattern, 0, NULL, &files) == 0 && files.gl_pathc)
        snprintf(s->found, sizeof s->found, "%s", files.gl_pathv[0]);
    globfree(&files);
    return s->found[0] != 0;
}

// library opens CUPTI as the process has it; else pip's, else the system's: of the CUDA runtime's release, if
// that is loaded, else the newest.
static void *library(void) {
    static const char *const releases[][2] = {
        {"libcupti.so.13", "libcudart.so.13"}, {"libcupti.so.12", "libcudart.so.12"}, {"libcupti.so.11.8", "libcudart.so.11.0"}};
    const char *named = getenv("OMNI_PERF_CUPTI_LIBRARY"), *home = getenv("CUDA_HOME");
    struct search s;
    void *found = named && *named ? dlopen(named, RTLD_NOW) : NULL;
    if (named && *named)
        return found;
    for (int i = 0; i < 9 && !found; i++) {
        const char *const *release = releases[i % 3];
        if (i < 3)
            found = dlopen(release[0], RTLD_NOW | RTLD_NOLOAD);
        else if (i >= 6 || dlopen(release[1], RTLD_LAZY | RTLD_NOLOAD)) { // which keeps it loaded: no harm
            s = (struct search){.wanted = release[0]};
            dl_iterate_phdr(beside, &s);
            found = s.found[0] ? dlopen(s.found, RTLD_NOW) : NULL;
            found = found ? found : dlopen(release[0], RTLD_NOW);
        }
    }
    snprintf(s.found, sizeof s.found, "%s/extras/CUPTI/lib64/libcupti.so", home && *home ? home : "/usr/local/cuda");
    return found ? found : dlopen(s.found, RTLD_NOW);
}

static int able; // to be one of several

static enum reason find(void) {
    void *found = library();
    int driver = 0, (*version)(int *) = (int (*)(int *))dlsym(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD), "cuDriverGetVersion");
    if (!found)
        return NO_LIBRARY;
#define FIND(name, arguments) *(void **)&cupti.name = dlsym(found, "cupti" #name);
#define THERE(name, arguments) && cupti.name
    FUNCTIONS(FIND) FUNCTIONS_OF_SEVERAL(FIND)
    able = version && version(&driver) == SUCCESS && driver >= DRIVER_FOR_SEVERAL FUNCTIONS_OF_SEVERAL(THERE);
    return found FUNCTIONS(THERE) ? FINE : NO_SYMBOL;
}

static enum reason load(int *failed) {
    static int loaded;
    enum reason reason = loaded ? FINE : find();
    if (reason != FINE)
        return reason;
    loaded = 1;
    if ((*failed = cupti.GetVersion(&ring->api)) != SUCCESS) // 999 where there is no driver
        return CUPTI_FAILED;
    for (size_t i = 0; i < sizeof modes / sizeof *modes && modes[i].from <= ring->api; i++)
        mode = &modes[i];
    return mode->allowed ? FINE : VERSION_REFUSED;
}

static void in_child(void) { forked = 1; }

// make makes the ring; its file is whole on the disk, so that no write can fail for want of room (SIGBUS).
static int make(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    int error = posix_fallocate(fd, 0, RING_SIZE);
    void *at = error ? MAP_FAILED : mmap(NULL, RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (!error && at == MAP_FAILED)
        error = errno;
    close(fd);
    if (error) {
        unlink(path);
        return error;
    }
    struct ring *r = at;
    r->record_size = sizeof(struct record), r->records = RING_RECORDS, r->names = RING_NAMES;
    r->pid = (uint32_t)getpid();
    r->names_used = 1; // 0 is no name
    atomic_store_explicit(&r->magic, RING_MAGIC, memory_order_release);
    if (!ring)
        pthread_atfork(NULL, NULL, in_child);
    pthread_mutex_lock(&lock);
    if (ring) // the sidecar is another one
        munmap(ring, RING_SIZE);
    memset(interned, 0, sizeof interned);
    next = 0, ring = r;
    records = (struct record *)((char *)at + RING_HEADER);
    names = (char *)(records + RING_RECORDS);
    pthread_mutex_unlock(&lock);
    snprintf(ring_path, sizeof ring_path, "%s", path);
    return 0;
}

// pair relates CUPTI's clock to CLOCK_MONOTONIC: the closest of five readings.
static void pair(void) {
    uint64_t theirs = 0, ours = 0, width = UINT64_MAX;
    for (int i = 0; i < 5; i++) {
        uint64_t before = monotonic(), now = 0;
        if (timestamp(&now) != SUCCESS)
            return;
        uint64_t after = monotonic();
        if (after - before < width)
            theirs = now, ours = before + (after - before) / 2, width = after - before;
    }
    pthread_mutex_lock(&lock);
    mark(CLOCK, theirs, ours, width / 2 + 1);
    pthread_mutex_unlock(&lock);
}

static const int kinds[] = {OVERHEAD, MEMSET, MEMCPY, KERNEL};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void turn(int to) {
    pthread_mutex_lock(&lock);
    if (to)
        began_at = window_since = completed_at = monotonic(), window_cost = rest_until = 0;
    on = to && !stopped;
    pthread_mutex_unlock(&lock);
}

// become is who it is from now on; callbacks read that.
static void become(void *user, int one_of_several) {
    pthread_mutex_lock(&lock);
    subscriber = user, several = one_of_several;
    pthread_mutex_unlock(&lock);
}

static void leave(void) {
    cupti.Unsubscribe(subscriber);
    become(NULL, several); // what comes late is not read by the other way
}

// join makes it a user of CUPTI: one of several where that can be, else the only one.
static enum reason join(int *failed) {
    struct parameters p = {sizeof p, "omni_perf", ring->first, sizeof ring->first, 1, {0}};
    uint8_t hardware = 0, whole = 0;
    size_t size = 1;
    void *user = NULL;
    if (able && cupti.Subscribe_v2(&user, nothing, NULL, &p) == SUCCESS) {
        become(user, 1);
        cupti.ActivityGetAttribute_v2(user, EVENTS_IN_HARDWARE, &size, &hardware);
        cupti.ActivityGetAttribute_v2(user, GRAPHS_AS_A_WHOLE, &size, &whole);
        *failed = cupti.ActivityRegisterCallbacks_v2(user, requested2, completed2);
        return hardware || whole ? OTHERWISE : *failed ? CUPTI_FAILED : FINE;
    }
    if (!(*failed = cupti.Subscribe(&user, nothing, NULL))) {
        able = 0; // the two ways do not mix
        become(user, 0);
        *failed = cupti.ActivityRegisterCallbacks(requested, completed);
    }
    return *failed == ONE_SUBSCRIBER || *failed == MAX_LIMIT_REACHED ? OCCUPIED : *failed ? CUPTI_FAILED : FINE;
}

static enum reason start(int *failed) {
    int enabled = 0;
    enum reason reason = load(failed);
    if (reason == FINE && (reason = join(failed)) == FINE) {
        cupti.ActivityFlushPeriod(100);
        turn(1); // callbacks begin with the first kind
        while (enabled < KINDS && !(*failed = enable(kinds[enabled])))
            enabled++;
        if (!*failed)
            return FINE;
        reason = CUPTI_FAILED;
        turn(0);
        while (enabled > 0)
            disable(kinds[--enabled]);
    }
    if (subscriber)
        leave();
    return reason;
}

// omni_perf_exact_begin records from now on, into a ring of its own at path, which the first call makes.
// It returns a reason, or the negative of an errno where there can be no ring.
PUBLIC int omni_perf_exact_begin(const char *path) {
    int failed = 0;
    if (forked)
        return -EPERM;
    pthread_mutex_lock(&calls);
    int problem = ring && strcmp(path, ring_path) == 0 ? 0 : make(path);
    pthread_mutex_lock(&lock);
    enum reason reason = stopped;
    pthread_mutex_unlock(&lock);
    if (!problem && reason == FINE && !subscriber)
        reason = start(&failed);
    if (!problem && reason == FINE)
        pair();
    pthread_mutex_lock(&lock);
    if (!problem && reason == FINE)
        edge(OPEN, monotonic());
    else if (!problem)
        mark(WHY, (uint64_t)failed, 0, reason);
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&calls);
    return problem ? -problem : (int)reason;
}

// omni_perf_exact_end stops recording; what CUPTI has not finished by then it keeps.
PUBLIC void omni_perf_exact_end(void) {
    if (forked)
        return;
    pthread_mutex_lock(&calls);
    if (subscriber) {
        int tries = 0;
        do { // unforced: work under way would get an end of 0
            cupti.ActivityFlushAll(0);
            nanosleep(&(struct timespec){0, tries ? 1000000 : 0}, NULL);
        } while (atomic_load_explicit(&ring->pending_since, memory_order_relaxed) && ++tries < 20);
        for (int i = KINDS; i-- > 0;)
            disable(kinds[i]);
        cupti.ActivityFlushAll(0);
        pair();
        pthread_mutex_lock(&lock);
        uint64_t now = monotonic();
        before_ns += now - began_at;
        if (lost.count)
            mark_lost();
        edge(SHUT, pending_since() ? least(pending_since(), now) : now);
        pthread_mutex_unlock(&lock);
        turn(0);
        leave();
    }
    pthread_mutex_unlock(&calls);
}

// InitializeInjection is called by the driver where CUDA_INJECTION64_PATH names this library, when CUDA starts.
PUBLIC int InitializeInjection(void) {
    const char *folder = getenv("OMNI_PERF_EXACT");
    char path[4096];
    if (folder && snprintf(path, sizeof path, "%s/exact-%d", folder, (int)getpid()) < (int)sizeof path &&
        omni_perf_exact_begin(path) == FINE)
        atexit(omni_perf_exact_end);
    return 1;
}
