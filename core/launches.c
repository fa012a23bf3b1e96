#include "launches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of adding lanes, and of the names of kernels that are gone while a launch of theirs may be running. Reading lanes
 * needs none. */
static pthread_mutex_t launches_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- lanes ------------------------------------------------------------------------------------------------------ */

static _Atomic(cc__lane *) *list_of(cc_context *context, CUstream native)
{
    const uintptr_t handle = (uintptr_t)native;
    return &context->lanes[(handle >> 4 ^ handle >> 10) % CC__LANE_LISTS];
}

static cc__lane *search(_Atomic(cc__lane *) *list, CUstream native)
{
    cc__lane *lane = atomic_load_explicit(list, memory_order_acquire);
    while (lane && lane->native != native)
        lane = lane->next;
    return lane;
}

cc__lane *cc__lane_new(CUstream native, bool is_many)
{
    cc__lane *made = calloc(1, sizeof *made);
    if (made) {
        made->native = native;
        made->is_many = is_many;
    }
    return made;
}

static cc__lane *add_lock_held(cc_context *context, _Atomic(cc__lane *) *list, CUstream native)
{
    cc__lane *made = search(list, native); /* another thread may have been faster */
    if (made)
        return made;
    made = cc__lane_new(native, native == CU_STREAM_PER_THREAD);
    if (!made)
        return context->spare_lane;
    made->next = atomic_load_explicit(list, memory_order_relaxed);
    atomic_store_explicit(list, made, memory_order_release);
    return made;
}

cc__lane *cc__lane_find(cc_context *context, cc_stream *stream)
{
    _Atomic(cc__lane *) *list = list_of(context, stream->native);
    cc__lane *lane = search(list, stream->native);
    if (!lane) {
        cc__lock(&launches_lock);
        lane = add_lock_held(context, list, stream->native);
        cc__unlock(&launches_lock);
    }
    /* A default stream is another one in another context. */
    if (!stream->is_default)
        atomic_store_explicit(&stream->lane, lane, memory_order_release);
    return lane;
}

/* For all lanes of a context, the one for which there was no memory too. */
static cc__lane *first_from(cc_context *context, int list)
{
    for (; list < CC__LANE_LISTS; list++) {
        cc__lane *lane = atomic_load_explicit(&context->lanes[list], memory_order_acquire);
        if (lane)
            return lane;
    }
    return context->spare_lane;
}

static cc__lane *first_lane(cc_context *context)
{
    return first_from(context, 0);
}

static cc__lane *next_lane(cc_context *context, const cc__lane *lane)
{
    if (lane == context->spare_lane)
        return NULL;
    return lane->next ? lane->next : first_from(context, (int)(list_of(context, lane->native) - context->lanes) + 1);
}

/* ---- waits for a whole context ---------------------------------------------------------------------------------- */

cc__marks cc__marks_of(cc_context *context)
{
    cc__marks made = {NULL, 0};
    size_t count = 0;
    for (cc__lane *lane = first_lane(context); lane; lane = next_lane(context, lane))
        count += lane->begun != lane->done;
    made.marks = count ? malloc(count * sizeof *made.marks) : NULL;
    if (!made.marks)
        return made;
    for (cc__lane *lane = first_lane(context); lane && made.count < count; lane = next_lane(context, lane))
        if (lane->begun != lane->done)
            made.marks[made.count++] = (cc__mark){lane, cc__launches_so_far(lane)};
    return made;
}

void cc__marks_drop(cc__marks *marks, bool reached)
{
    for (size_t i = 0; reached && i < marks->count; i++)
        cc__mark_reached(marks->marks[i]);
    free(marks->marks);
}

/* ---- single launches -------------------------------------------------------------------------------------------- */

void cc__launch_refused(cc__lane *lane, uint64_t number)
{
    cc__launch *launch = &lane->launches[(number - 1) % CC__LAUNCHES_KEPT];
    if (atomic_load_explicit(&launch->number, memory_order_acquire) == number)
        atomic_store_explicit(&launch->kernel, NULL, memory_order_release);
}

typedef struct range { /* numbers of launches: from first up to last; first > last: none */
    uint64_t first, last;
} range;

/* Those that may be running, without and with those that are not known by name any more. */
static range open_launches(const cc__lane *lane)
{
    const uint64_t done = atomic_load_explicit(&lane->done, memory_order_acquire);
    return (range){done + 1, atomic_load_explicit(&lane->begun, memory_order_acquire)};
}

static range known_launches(const cc__lane *lane)
{
    range found = open_launches(lane);
    if (found.last > CC__LAUNCHES_KEPT && found.first < found.last - CC__LAUNCHES_KEPT + 1)
        found.first = found.last - CC__LAUNCHES_KEPT + 1;
    return found;
}

/* False: another thread is writing it, or has written a later one there. */
static bool read_launch(const cc__lane *lane, uint64_t number, const char **kernel)
{
    const cc__launch *launch = &lane->launches[(number - 1) % CC__LAUNCHES_KEPT];
    if (atomic_load_explicit(&launch->number, memory_order_acquire) != number)
        return false;
    *kernel = atomic_load_explicit(&launch->kernel, memory_order_acquire);
    return atomic_load_explicit(&launch->number, memory_order_acquire) == number;
}

/* ---- names of kernels ------------------------------------------------------------------------------------------- */

static cc__name *retired; /* of kernels that are gone, as long as a launch may be asked for them */

static bool lane_names(const cc__lane *lane, const char *text)
{
    const range known = known_launches(lane);
    for (uint64_t number = known.first; number <= known.last; number++) {
        const cc__launch *launch = &lane->launches[(number - 1) % CC__LAUNCHES_KEPT];
        if (atomic_load_explicit(&launch->kernel, memory_order_acquire) == text)
            return true;
    }
    return false;
}

typedef struct wanted {
    const char *text;
    bool found;
} wanted;

static void look_for_name(cc_context *context, void *argument)
{
    wanted *name = argument;
    for (cc__lane *lane = first_lane(context); lane && !name->found; lane = next_lane(context, lane))
        name->found = lane_names(lane, name->text);
}

static bool is_named(const char *text)
{
    wanted name = {text, false};
    cc__contexts_each(look_for_name, &name);
    return name.found;
}

cc__name *cc__name_new(const char *text)
{
    const size_t size = strlen(text) + 1;
    cc__name *made = malloc(sizeof *made + size);
    if (made) {
        made->next = NULL;
        memcpy(made->text, text, size);
    }
    return made;
}

void cc__name_retire(cc__name *name)
{
    cc__lock(&launches_lock);
    name->next = retired;
    retired = name;
    for (cc__name **link = &retired; *link;) {
        cc__name *each = *link;
        if (is_named(each->text)) {
            link = &each->next;
        } else {
            *link = each->next;
            free(each);
        }
    }
    cc__unlock(&launches_lock);
}

/* ---- what was in flight ----------------------------------------------------------------------------------------- */

typedef struct account {
    char *text;
    size_t size, length;
    unsigned shown;
    uint64_t count, more;
} account;

enum { SHOWN = 8 }; /* launches in an account; of the rest the number */

static void say_stream(account *said, const cc__lane *lane)
{
    char *to = said->text + said->length;
    const size_t room = said->size - said->length;
    if (lane->native == CU_STREAM_LEGACY)
        said->length += (size_t)snprintf(to, room, " on the legacy default stream");
    else if (lane->native == CU_STREAM_PER_THREAD)
        said->length += (size_t)snprintf(to, room, " on a per-thread default stream");
    else if (!lane->native)
        said->length += (size_t)snprintf(to, room, " on some stream");
    else
        said->length += (size_t)snprintf(to, room, " on stream 0x%llx", (unsigned long long)(uintptr_t)lane->native);
}

static void say_launch(account *said, const cc__lane *lane, const char *kernel)
{
    enum { LONGEST_NAME = 420, LONGEST_STREAM = 48 };
    const char *name = *kernel ? kernel : "(of unknown name)";
    const size_t length = strnlen(name, LONGEST_NAME);
    if (said->shown == SHOWN || said->size - said->length < length + LONGEST_STREAM + sizeof "; kernel ...") {
        said->more++;
        return;
    }
    said->length += (size_t)snprintf(said->text + said->length, said->size - said->length, "%skernel %.*s%s",
                                     said->shown++ ? "; " : "", LONGEST_NAME, name, name[length] ? "..." : "");
    say_stream(said, lane);
}

static void say_lane(account *said, const cc__lane *lane)
{
    const range open = open_launches(lane), known = known_launches(lane);
    said->count += known.first - open.first;
    said->more += known.first - open.first;
    for (uint64_t number = known.first; number <= known.last; number++) {
        const char *kernel;
        if (!read_launch(lane, number, &kernel)) {
            said->count++;
            said->more++;
        } else if (kernel) {
            said->count++;
            say_launch(said, lane, kernel);
        }
    }
}

uint64_t cc__launches_in_flight(cc_context *context, char *text, size_t size)
{
    enum { ENDING = 48 };
    account said = {.text = text, .size = size - ENDING};
    text[0] = '\0';
    cc__lock(&launches_lock); /* no name is freed meanwhile */
    for (cc__lane *lane = first_lane(context); lane; lane = next_lane(context, lane))
        say_lane(&said, lane);
    cc__unlock(&launches_lock);
    if (said.more)
        snprintf(text + said.length, ENDING, "%s%llu more", said.shown ? "; and " : "", (unsigned long long)said.more);
    return said.count;
}
