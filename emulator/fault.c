/* CUDA_CORE_EMULATOR_FAULT and cuEmulatorSetFaultPlan: which driver calls and host allocations fail, and how. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "cuda_core_emulator.h"
#include "fault.h"

#define GRAMMAR                                                                                                        \
    "a plan is rules joined by ';', a rule words joined by ',': what fails, one of call=N (the Nth driver call), "     \
    "call=NAME (calls of that name), allocation=N (the Nth allocation of host memory in the emulator); then, as "      \
    "wanted, nth=N (of that name only the Nth), onwards (from then on), code=NUMBER or code=NAME "                     \
    "(CUDA_ERROR_UNKNOWN unless given), late (the call is done, then the error returned); the rule count alone lets "  \
    "nothing fail"

enum { MOST_RULES = 16, MOST_CALLS = 1 << 16, NAME_BYTES = 64 };

typedef enum what { NOTHING, NTH_CALL, NAMED_CALL, ALLOCATION } what;

typedef struct rule {
    what what;
    char name[NAME_BYTES];
    uint64_t nth; /* 0: each */
    bool onwards, late;
    int code;
    uint64_t met; /* calls of that name so far */
} rule;

typedef struct plan {
    rule rules[MOST_RULES];
    size_t count;
} plan;

_Atomic bool em_fault_planned;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static plan current;
static cuEmulatorFaults counts;
static const char *names[MOST_CALLS]; /* of the calls since the plan was set */
static const void *callers[MOST_CALLS];
static char environment_error[1024];

/* ---- reading a plan ---------------------------------------------------------------------------------------------- */

static bool read_count(const char *text, uint64_t *count)
{
    char *end;
    errno = 0;
    *count = strtoull(text, &end, 10);
    return isdigit((unsigned char)text[0]) && errno == 0 && *end == '\0' && *count != 0;
}

static bool read_code(const char *text, int *code)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (isdigit((unsigned char)text[0])) {
        *code = (int)number;
        return *end == '\0' && number > 0 && number < 10000 && em_error_name(*code) != NULL;
    }
    for (*code = 1; *code < 1000; ++*code) {
        const char *name = em_error_name(*code);
        if (name != NULL && strcmp(name, text) == 0)
            return true;
    }
    return false;
}

/* Without the version and the kind of default stream: cuMemcpyAsync of cuMemcpyAsync_v2_ptsz. */
static size_t base_length(const char *name)
{
    size_t length = strlen(name);
    if (length > 5 && (strcmp(name + length - 5, "_ptsz") == 0 || strcmp(name + length - 5, "_ptds") == 0))
        length -= 5;
    if (length > 3 && name[length - 3] == '_' && name[length - 2] == 'v' && isdigit((unsigned char)name[length - 1]))
        length -= 3;
    return length;
}

static bool read_call(const char *text, rule *made)
{
    if (isdigit((unsigned char)text[0])) {
        made->what = NTH_CALL;
        return read_count(text, &made->nth);
    }
    size_t length = base_length(text);
    char base[NAME_BYTES];
    if (strlen(text) >= sizeof base)
        return false;
    memcpy(base, text, length);
    base[length] = '\0';
    made->what = NAMED_CALL;
    strcpy(made->name, text);
    return em_entry_exists(base);
}

static bool read_word(const char *word, rule *made)
{
    if (strncmp(word, "call=", 5) == 0)
        return made->what == NOTHING && read_call(word + 5, made);
    if (strncmp(word, "allocation=", 11) == 0) {
        bool first = made->what == NOTHING;
        made->what = ALLOCATION;
        return first && read_count(word + 11, &made->nth);
    }
    if (strncmp(word, "nth=", 4) == 0)
        return made->what == NAMED_CALL && read_count(word + 4, &made->nth);
    if (strncmp(word, "code=", 5) == 0)
        return made->what != ALLOCATION && read_code(word + 5, &made->code);
    made->onwards |= strcmp(word, "onwards") == 0;
    made->late |= strcmp(word, "late") == 0 && made->what != ALLOCATION;
    return strcmp(word, "onwards") == 0 || (strcmp(word, "late") == 0 && made->late);
}

static bool read_rule(char *text, rule *made)
{
    char *rest;
    *made = (rule){.code = CUDA_ERROR_UNKNOWN};
    if (strcmp(text, "count") == 0)
        return true;
    for (char *word = strtok_r(text, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest))
        if (!read_word(word, made))
            return false;
    return made->what != NOTHING;
}

static bool read_plan(const char *text, plan *made)
{
    char copy[1024];
    made->count = 0;
    if (strlen(text) >= sizeof copy)
        return false;
    strcpy(copy, text);
    char *next = copy;
    do {
        char *rule_text = strsep(&next, ";");
        if (made->count == MOST_RULES || !read_rule(rule_text, &made->rules[made->count++]))
            return false;
    } while (next != NULL);
    return true;
}

static void begin(const plan *made)
{
    pthread_mutex_lock(&lock);
    current = *made;
    counts = (cuEmulatorFaults){0};
    pthread_mutex_unlock(&lock);
    em_watch(EM_WATCH_FAULTS, true);
    em_fault_planned = true;
}

CUresult cuEmulatorSetFaultPlan(const char *text)
{
    plan made;
    if (text == NULL) { /* the counts stay */
        em_fault_planned = false;
        em_watch(EM_WATCH_FAULTS, false);
        return CUDA_SUCCESS;
    }
    if (!read_plan(text, &made)) {
        int status = em_explain(CUDA_ERROR_INVALID_VALUE, "cuEmulatorSetFaultPlan(\"%s\"): %s", text, GRAMMAR);
        return em_call_ends("cuEmulatorSetFaultPlan", (CUresult)status, "\"%s\"", text);
    }
    begin(&made);
    return CUDA_SUCCESS;
}

__attribute__((constructor)) static void read_environment(void)
{
    const char *text = getenv("CUDA_CORE_EMULATOR_FAULT");
    plan made;
    if (text == NULL || text[0] == '\0')
        return;
    if (read_plan(text, &made))
        begin(&made);
    else
        snprintf(environment_error, sizeof environment_error, "CUDA_CORE_EMULATOR_FAULT=%.200s: %s", text, GRAMMAR);
}

int em_fault_environment(void)
{
    return environment_error[0] == '\0' ? CUDA_SUCCESS
                                        : em_explain(CUDA_ERROR_INVALID_VALUE, "%s", environment_error);
}

/* ---- what fails -------------------------------------------------------------------------------------------------- */

static bool has_name(const rule *wanted, const char *name)
{
    size_t length = strlen(wanted->name);
    if (base_length(wanted->name) == length)
        return base_length(name) == length && strncmp(name, wanted->name, length) == 0;
    return strcmp(name, wanted->name) == 0;
}

static bool is_due(const rule *wanted, uint64_t number)
{
    return wanted->nth == 0 || number == wanted->nth || (wanted->onwards && number > wanted->nth);
}

static bool fails_call(rule *wanted, const char *name)
{
    if (wanted->what == NTH_CALL)
        return is_due(wanted, counts.calls);
    if (wanted->what != NAMED_CALL || !has_name(wanted, name))
        return false;
    return is_due(wanted, ++wanted->met);
}

/* A code of those that a failed kernel leaves in its context does so here, too: every later call there fails. */
static int inject(const char *name, int code, uint64_t number)
{
    int status = em_explain(code, "a fault by plan: driver call %llu, %s", (unsigned long long)number, name);
    em_context *context = em_self.current;
    em_detail *detail = em_self.detail;
    if (em_poisons(code) && context != NULL && context->object.live && detail != NULL)
        em_context_poison(context, code, detail);
    return status;
}

int em_fault_call(const char *name, const void *caller)
{
    int early = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    uint64_t number = ++counts.calls;
    if (number <= MOST_CALLS) {
        names[number - 1] = name;
        callers[number - 1] = caller;
    }
    em_self.late_fault = CUDA_SUCCESS;
    for (size_t i = 0; i < current.count && early == CUDA_SUCCESS; i++) {
        rule *wanted = &current.rules[i];
        if (!fails_call(wanted, name))
            continue;
        counts.failed_calls++;
        if (wanted->late)
            em_self.late_fault = wanted->code;
        else
            early = wanted->code;
    }
    em_self.fault_number = number;
    pthread_mutex_unlock(&lock);
    return early != CUDA_SUCCESS ? inject(name, early, number) : CUDA_SUCCESS;
}

int em_fault_late(const char *name, int status)
{
    int late = em_self.late_fault;
    em_self.late_fault = CUDA_SUCCESS;
    /* A call that fails by itself says why. */
    return late != CUDA_SUCCESS && status == CUDA_SUCCESS ? inject(name, late, em_self.fault_number) : status;
}

CUresult cuEmulatorFaultCounts(cuEmulatorFaults *into, size_t size)
{
    if (into == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    memset(into, 0, size);
    pthread_mutex_lock(&lock);
    memcpy(into, &counts, size < sizeof counts ? size : sizeof counts);
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* With the lock held. */
static bool is_remembered(uint64_t number)
{
    return number != 0 && number <= counts.calls && number <= MOST_CALLS;
}

const char *cuEmulatorCallName(uint64_t number)
{
    pthread_mutex_lock(&lock);
    const char *name = is_remembered(number) ? names[number - 1] : NULL;
    pthread_mutex_unlock(&lock);
    return name;
}

const void *cuEmulatorCallPlace(uint64_t number)
{
    pthread_mutex_lock(&lock);
    const void *caller = is_remembered(number) ? callers[number - 1] : NULL;
    pthread_mutex_unlock(&lock);
    return caller;
}

/* ---- host memory: the linker's --wrap leads every allocation of the emulator here -------------------------------- */

static bool allocation_fails(void)
{
    bool fails = false;
    pthread_mutex_lock(&lock);
    counts.allocations++;
    for (size_t i = 0; i < current.count; i++)
        fails |= current.rules[i].what == ALLOCATION && is_due(&current.rules[i], counts.allocations);
    counts.failed_allocations += fails;
    pthread_mutex_unlock(&lock);
    if (fails)
        errno = ENOMEM;
    return fails;
}

#define FAILS (__builtin_expect(atomic_load_explicit(&em_fault_planned, memory_order_relaxed), 0) && allocation_fails())

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

void *__wrap_malloc(size_t size)
{
    return FAILS ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return FAILS ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size)
{
    return FAILS ? NULL : __real_realloc(block, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return FAILS ? NULL : __real_aligned_alloc(alignment, size);
}
