// The ring that the shim writes in the user's process and the sidecar reads (../ring.go has the same layout,
// which a test compares): one file, private to its user, mapped by both. A page of header, the records, the names.
#ifndef OMNI_PERF_RING_H
#define OMNI_PERF_RING_H

#include <stdatomic.h>
#include <stdint.h>

#define RING_MAGIC 0x31495450554e4d4fULL // "OMNUPTI1", read as a number
#define RING_HEADER 4096
#define RING_RECORDS (1u << 17)
#define RING_SPARE 64u // of those, for what says which times are complete
#define RING_NAMES (1u << 20)
#define RING_SIZE (RING_HEADER + (size_t)RING_RECORDS * sizeof(struct record) + RING_NAMES)

// What a record is: CUPTI's own numbers of activities, and what the shim adds.
enum kind {
    MEMCPY = 1, MEMSET = 2, KERNEL = 10, OVERHEAD = 17,
    CLOCK = 200, // at start on CUPTI's clock it was end on CLOCK_MONOTONIC, give or take number
    OPEN,        // from start on (CLOCK_MONOTONIC) everything is recorded
    SHUT,        // until start
    LOST,        // number records were not taken; they lie between start and end on CUPTI's clock
    MISSED,      // number records were not, which CUPTI completed between start and end (CLOCK_MONOTONIC)
    WHY          // nothing is recorded, or nothing more, for a reason (number); start is the error that CUPTI returned
};

struct record {
    uint64_t start, end, number;
    uint32_t name; // where it begins among the names; 0: none, or there is no room
    uint32_t device, stream;
    uint16_t kind;
    uint16_t copy; // a MEMCPY's copyKind
};

// The reasons. ../reasons.go has their sentences.
enum reason {
    FINE, NO_LIBRARY, NO_SYMBOL, VERSION_REFUSED, OCCUPIED, CUPTI_FAILED, BAD_TIMES, MOST_RECORDS, MOST_SECONDS,
    OTHERWISE, DEVICE_MEMORY
};

struct ring {
    _Atomic uint64_t magic; // written last, with release
    uint32_t record_size, pid, records, names;
    uint32_t api, unused; // cuptiGetVersion; 0: not asked
    // head is written by the shim alone, with release, when everything before it is; tail by the
    // sidecar alone, with release, when it has read everything before it. Both only grow.
    _Atomic uint64_t head, tail;
    _Atomic uint64_t names_used;
    _Atomic uint64_t lost;          // records for which there was no room
    _Atomic uint64_t dropped;       // records that CUPTI says it had no buffer for, while it was given some
    _Atomic uint64_t unknown;       // records that nobody asked for
    _Atomic uint64_t pending_since; // CLOCK_MONOTONIC: the oldest buffer that CUPTI has; 0: it has none
    _Atomic uint64_t blind;         // not even the spare room sufficed: nothing is known to be complete
    _Atomic uint64_t taken;         // records of activities
    _Atomic uint64_t callback_ns;   // of CPU time in our callbacks
    _Atomic uint64_t overhead_ns;   // that CUPTI itself reports
    _Atomic uint64_t rests;
    _Atomic uint64_t halt; // written by the sidecar: record no more, as the device's memory is scarce
    char first[64];        // who uses CUPTI besides, as it says it
};

#endif
