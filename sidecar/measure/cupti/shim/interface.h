// What the shim uses of CUPTI, declared anew: by the names and numbers of cupti_activity.h, cupti_callbacks.h and
// cupti_result.h. layout_test.go compares them with NVIDIA's headers.
#ifndef OMNI_PERF_INTERFACE_H
#define OMNI_PERF_INTERFACE_H

#include <stddef.h>
#include <stdint.h>

enum { SUCCESS = 0, MAX_LIMIT_REACHED = 12, ONE_SUBSCRIBER = 39 };
typedef void requested_f(uint8_t **buffer, size_t *size, size_t *records);
typedef void completed_f(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);
typedef void callback_f(void *data, int domain, uint32_t id, const void *info);
typedef void requested2_f(uint8_t **buffer, size_t *size, size_t *records, void *info);
typedef void completed2_f(uint8_t *buffer, size_t size, size_t valid, void *info);
struct parameters { size_t size; const char *name; char *first; size_t first_size; uint8_t several, padding[7]; };
#define FUNCTIONS(X)                                                                                         \
    X(GetVersion, (uint32_t *)) X(GetTimestamp, (uint64_t *)) X(Subscribe, (void **, callback_f *, void *))     \
    X(Unsubscribe, (void *)) X(ActivityRegisterCallbacks, (requested_f *, completed_f *))                       \
    X(ActivityEnable, (int)) X(ActivityDisable, (int)) X(ActivityFlushAll, (uint32_t))                          \
    X(ActivityGetNextRecord, (uint8_t *, size_t, uint8_t **))                                                   \
    X(ActivityGetNumDroppedRecords, (void *, uint32_t, size_t *)) X(ActivityFlushPeriod, (uint32_t))
// From CUDA 13.3 on a process may have several users of CUPTI, where each of them uses these, and the driver is of that
// release, too (r610).
enum { DRIVER_FOR_SEVERAL = 13030 }; // cuDriverGetVersion
#define FUNCTIONS_OF_SEVERAL(X)                                                                              \
    X(Subscribe_v2, (void **, callback_f *, void *, struct parameters *)) X(GetTimestamp_v2, (void *, uint64_t *)) \
    X(ActivityRegisterCallbacks_v2, (void *, requested2_f *, completed2_f *))                                   \
    X(ActivityEnable_v2, (void *, int, void *)) X(ActivityDisable_v2, (void *, int, void *))                    \
    X(ActivityGetNextRecord_v2, (void *, uint8_t *, size_t, uint8_t **))                                        \
    X(ActivityGetNumDroppedRecords_v2, (void *, void *, uint32_t, size_t *))                                    \
    X(ActivityGetAttribute_v2, (void *, int, size_t *, void *))
enum { EVENTS_IN_HARDWARE = 13, GRAPHS_AS_A_WHOLE = 20 }; // attributes, from CUDA 13.3 on

// Offsets within activity records: the same from CUpti_ActivityKernel4, Memcpy and Memset on (CUDA 11.0) to
// CUDA 13.5; only the sizes differ, which CUPTI steps over.
enum {
    START = 16, END = 24,
    KERNEL_DEVICE = 40, KERNEL_STREAM = 48, KERNEL_NAME = 104, COPY_KIND = 4, COPY_DEVICE = 32, COPY_STREAM = 40,
    OVERHEAD_KIND = 4, OVERHEAD_START = 24, OVERHEAD_END = 32
};
enum { BUFFER_FLUSH = 1 << 16, INSTRUMENTATION = 2 << 16, RESOURCE = 3 << 16 }; // overheads that are CUPTI's own

#endif
