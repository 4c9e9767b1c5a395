// Engine activity: a step function of time and its mean over any window.
#include "fake.h"

#include <stdlib.h>
#include <time.h>

int64_t now_of(int clock_id) {
    struct timespec ts;
    clock_gettime(clock_id, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void activity_add(struct device *d, int64_t at, double percent) {
    double before = 0;
    if (d->step_count > 0) {
        struct step *last = &d->steps[d->step_count - 1];
        if (at < last->at) at = last->at;
        before = last->before + last->percent * (double)(at - last->at);
    }
    if (d->step_count == d->step_room) {
        int room = d->step_room ? 2 * d->step_room : 256;
        struct step *grown = realloc(d->steps, (size_t)room * sizeof *grown);
        if (!grown) return;
        d->steps = grown;
        d->step_room = room;
    }
    d->steps[d->step_count++] = (struct step){at, percent, before};
}

static double integral(const struct device *d, int64_t at) {
    int low = 0, high = d->step_count; // steps[low-1].at <= at < steps[high].at
    while (low < high) {
        int mid = (low + high) / 2;
        if (d->steps[mid].at <= at) low = mid + 1;
        else high = mid;
    }
    if (low == 0) return 0;
    const struct step *s = &d->steps[low - 1];
    return s->before + s->percent * (double)(at - s->at);
}

double activity_mean(const struct device *d, int64_t from, int64_t to) {
    if (to <= from) return 0;
    return (integral(d, to) - integral(d, from)) / (double)(to - from);
}
