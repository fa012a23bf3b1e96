/* Which handler serves an instruction: the lists of forms of this machine's instruction set, behind a hash. */
#include <stdlib.h>

#include "engine.h"
#include "matrix.h"

#define FORMS(name) extern const em_form EM_PASTE(em_forms_##name, base)[];
#include "forms.def"
#undef FORMS
extern const em_memory_table em_memory_base;
extern const em_move_table em_move_base;
extern const em_matrix_table em_matrix_base;

#define FORMS(name) EM_PASTE(em_forms_##name, base),
static const em_form *const forms_base[] = {
#include "forms.def"
    NULL};
#undef FORMS
static const em_isa isa_base = {"base", forms_base, &em_memory_base, &em_move_base, &em_matrix_base};

#ifdef EM_HAVE_X86_LEVELS
#define FORMS(name) extern const em_form EM_PASTE(em_forms_##name, v3)[], EM_PASTE(em_forms_##name, v4)[];
#include "forms.def"
#undef FORMS
extern const em_memory_table em_memory_v3, em_memory_v4;
extern const em_move_table em_move_v3, em_move_v4;
extern const em_matrix_table em_matrix_v3, em_matrix_v4;

#define FORMS(name) EM_PASTE(em_forms_##name, v3),
static const em_form *const forms_v3[] = {
#include "forms.def"
    NULL};
#undef FORMS
#define FORMS(name) EM_PASTE(em_forms_##name, v4),
static const em_form *const forms_v4[] = {
#include "forms.def"
    NULL};
#undef FORMS
static const em_isa isa_v3 = {"v3", forms_v3, &em_memory_v3, &em_move_v3, &em_matrix_v3};
static const em_isa isa_v4 = {"v4", forms_v4, &em_memory_v4, &em_move_v4, &em_matrix_v4};
#endif

enum { SET_WORDS = (PTX_MOD_COUNT + 63) / 64 };

typedef struct entry {
    const em_form *form;
    uint64_t set[SET_WORDS];
    uint32_t hash;
    uint32_t next; /* index + 1 of the next of this bucket */
} entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below, until they are there */
static const em_isa *chosen;
static entry *entries;
static uint32_t *buckets, bucket_mask;

/* CUDA_CORE_EMULATOR_ISA=base|v3|v4 holds the choice down, for tests. */
static const em_isa *choose(void)
{
#ifdef EM_HAVE_X86_LEVELS
    const char *wanted = getenv("CUDA_CORE_EMULATOR_ISA");
    const bool base = wanted != NULL && strcmp(wanted, "base") == 0;
    const bool v3 = wanted != NULL && strcmp(wanted, "v3") == 0;
    __builtin_cpu_init();
    const bool has_v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                        __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const bool has_v4 = has_v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vl");
    if (has_v4 && !base && !v3)
        return &isa_v4;
    if (has_v3 && !base)
        return &isa_v3;
#endif
    return &isa_base;
}

static uint32_t hash_of(unsigned opcode, const uint16_t types[EM_FORM_TYPES], const uint64_t set[SET_WORDS])
{
    uint64_t hash = opcode * UINT64_C(0x9E3779B97F4A7C15);
    for (int i = 0; i < EM_FORM_TYPES; i++)
        hash = (hash ^ types[i]) * UINT64_C(0xff51afd7ed558ccd);
    for (int i = 0; i < SET_WORDS; i++)
        hash = (hash ^ set[i] ^ hash >> 31) * UINT64_C(0xc4ceb9fe1a85ec53);
    return (uint32_t)(hash >> 32);
}

static void add_form(const em_form *form, uint32_t index)
{
    entry *made = &entries[index];
    made->form = form;
    for (int i = 0; i < EM_FORM_MODIFIERS && form->modifiers[i] != PTX_MOD_NONE; i++)
        made->set[form->modifiers[i] / 64] |= UINT64_C(1) << (form->modifiers[i] % 64);
    made->hash = hash_of(form->opcode, form->types, made->set);
    uint32_t *bucket = &buckets[made->hash & bucket_mask];
    made->next = *bucket;
    *bucket = index + 1;
}

static void build(void)
{
    chosen = choose();
    uint32_t count = 0, size = 64;
    for (const em_form *const *list = chosen->forms; *list != NULL; list++)
        for (const em_form *form = *list; form->masked != NULL; form++)
            count++;
    while (size < 2 * count)
        size *= 2;
    bucket_mask = size - 1;
    entries = calloc(count + 1, sizeof *entries);
    buckets = calloc(size, sizeof *buckets);
    if (entries == NULL || buckets == NULL) { /* lack of memory may pass: the next launch tries again */
        free(entries);
        free(buckets);
        entries = NULL;
        buckets = NULL;
        return;
    }
    uint32_t index = 0;
    for (const em_form *const *list = chosen->forms; *list != NULL; list++)
        for (const em_form *form = *list; form->masked != NULL; form++)
            add_form(form, index++);
}

const em_isa *em_isa_chosen(void)
{
    pthread_mutex_lock(&lock);
    if (entries == NULL)
        build();
    const em_isa *found = entries != NULL ? chosen : NULL;
    pthread_mutex_unlock(&lock);
    return found;
}

static bool says_nothing(ptx_opcode op, ptx_modifier modifier, ptx_class class_of)
{
    switch (class_of) {
    case PTX_CLASS_SPACE:
    case PTX_CLASS_SEMANTICS:
    case PTX_CLASS_SCOPE:
    case PTX_CLASS_CACHE:
    case PTX_CLASS_VECTOR:
    case PTX_CLASS_SHAPE:
        return true;
    default:
        break;
    }
    if (modifier == PTX_MOD_UNI)
        return op == PTX_OP_BRA || op == PTX_OP_CALL || op == PTX_OP_RET;
    return modifier == PTX_MOD_ALIGNED || (modifier >= PTX_MOD_L1 && modifier <= PTX_MOD_L2_256B);
}

static const uint8_t class_by_modifier[] = {
    [PTX_MOD_NONE] = PTX_CLASS_FLAG,
#define MODIFIER(identifier, spelling, class) [PTX_MOD_##identifier] = PTX_CLASS_##class,
#include "../ptx/modifiers.def"
#undef MODIFIER
};

bool em_form_find(const ptx_instruction *instruction, em_handlers *found)
{
    const ptx_mnemonic *mnemonic = instruction->mnemonic;
    if (mnemonic->type_count > EM_FORM_TYPES)
        return false;
    uint16_t types[EM_FORM_TYPES] = {0};
    for (unsigned i = 0; i < mnemonic->type_count; i++)
        types[i] = mnemonic->types[i];
    uint64_t set[SET_WORDS] = {0};
    for (unsigned i = 0; i < mnemonic->suffix_count; i++) {
        const unsigned modifier = mnemonic->suffixes[i];
        if (!says_nothing((ptx_opcode)instruction->op, (ptx_modifier)modifier, (ptx_class)class_by_modifier[modifier]))
            set[modifier / 64] |= UINT64_C(1) << (modifier % 64);
    }
    const uint32_t hash = hash_of(instruction->op, types, set);
    for (uint32_t at = buckets[hash & bucket_mask]; at != 0; at = entries[at - 1].next) {
        const entry *candidate = &entries[at - 1];
        if (candidate->hash == hash && candidate->form->opcode == instruction->op &&
            memcmp(candidate->form->types, types, sizeof types) == 0 && memcmp(candidate->set, set, sizeof set) == 0 &&
            memcmp(candidate->form->shape, mnemonic->shape, sizeof mnemonic->shape) == 0) {
            *found = (em_handlers){candidate->form->full, candidate->form->masked};
            return true;
        }
    }
    return false;
}
