#include "vocabulary.h"

#include <locale.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int tier;
} opcodes[PTX_OP_COUNT] = {
    {"unsupported", 0},
#define OPCODE(identifier, spelling, tier) {spelling, tier},
#include "opcodes.def"
#undef OPCODE
};

static const struct {
    const char *name;
    uint8_t bits, kind;
} types[PTX_TYPE_COUNT] = {
    {"", 0, PTX_KIND_NONE},
#define TYPE(identifier, spelling, bits, kind) {spelling, bits, PTX_KIND_##kind},
#include "types.def"
#undef TYPE
};

static const struct {
    const char *name;
    uint8_t class_of;
} modifiers[PTX_MOD_COUNT] = {
    {"", PTX_CLASS_FLAG},
#define MODIFIER(identifier, spelling, class) {spelling, PTX_CLASS_##class},
#include "modifiers.def"
#undef MODIFIER
};

static const struct {
    const char *name;
    uint8_t type, components;
} specials[PTX_SPECIAL_COUNT] = {
#define SPECIAL(identifier, spelling, type, components) {spelling, PTX_##type, components},
#include "special.def"
#undef SPECIAL
};

const char *ptx_opcode_name(ptx_opcode op)
{
    return opcodes[op].name;
}

int ptx_opcode_tier(ptx_opcode op)
{
    return opcodes[op].tier;
}

const char *ptx_type_name(ptx_type type)
{
    return types[type].name;
}

unsigned ptx_type_bits(ptx_type type)
{
    return types[type].bits;
}

unsigned ptx_type_size(ptx_type type)
{
    return (types[type].bits + 7u) / 8u;
}

ptx_kind ptx_type_kind(ptx_type type)
{
    return (ptx_kind)types[type].kind;
}

const char *ptx_modifier_name(ptx_modifier modifier)
{
    return modifiers[modifier].name;
}

ptx_class ptx_class_of(ptx_modifier modifier)
{
    return (ptx_class)modifiers[modifier].class_of;
}

const char *ptx_special_name(ptx_special special)
{
    return specials[special].name;
}

ptx_type ptx_special_type(ptx_special special)
{
    return (ptx_type)specials[special].type;
}

unsigned ptx_special_components(ptx_special special)
{
    return specials[special].components;
}

const char *ptx_space_name(ptx_space space)
{
    static const char *const names[] = {"generic", "reg", "global", "shared", "local", "const", "param", "tex"};
    return names[space];
}

ptx_space ptx_space_of(ptx_modifier modifier)
{
    switch (modifier) {
    case PTX_MOD_GLOBAL:
        return PTX_SPACE_GLOBAL;
    case PTX_MOD_SHARED:
    case PTX_MOD_SHARED_CTA:
    case PTX_MOD_SHARED_CLUSTER:
        return PTX_SPACE_SHARED;
    case PTX_MOD_LOCAL:
        return PTX_SPACE_LOCAL;
    case PTX_MOD_CONST:
        return PTX_SPACE_CONST;
    case PTX_MOD_PARAM:
    case PTX_MOD_PARAM_ENTRY:
    case PTX_MOD_PARAM_FUNC:
        return PTX_SPACE_PARAM;
    default:
        return PTX_SPACE_GENERIC;
    }
}

/* ---- words to enumerators: one open hash for all tables, filled once a process --------------- */

typedef enum table { TABLE_NONE, TABLE_OPCODE, TABLE_TYPE, TABLE_MODIFIER, TABLE_SPECIAL } table;

enum { SLOTS = 2048 }; /* a power of two, several times the number of words */

static struct word {
    const char *text;
    uint8_t length;
    uint8_t table;
    uint16_t value;
} words[SLOTS];

static locale_t c_locale;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static size_t slot_of(const char *word, size_t length, table which)
{
    uint32_t hash = 2166136261u ^ (uint32_t)which;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)word[i]) * 16777619u;
    return (hash ^ hash >> 15) & (SLOTS - 1);
}

static void add_word(const char *text, table which, unsigned value)
{
    const size_t length = strlen(text);
    if (length == 0)
        return;
    size_t slot = slot_of(text, length, which);
    while (words[slot].text != NULL)
        slot = (slot + 1) & (SLOTS - 1);
    words[slot] = (struct word){text, (uint8_t)length, (uint8_t)which, (uint16_t)value};
}

static void fill(void)
{
    for (unsigned i = 1; i < PTX_OP_COUNT; i++)
        add_word(opcodes[i].name, TABLE_OPCODE, i);
    for (unsigned i = 1; i < PTX_TYPE_COUNT; i++)
        add_word(types[i].name, TABLE_TYPE, i);
    for (unsigned i = 1; i < PTX_MOD_COUNT; i++)
        add_word(modifiers[i].name, TABLE_MODIFIER, i);
    add_word("NaN", TABLE_MODIFIER, PTX_MOD_NAN); /* min and max spell it so, setp spells it nan */
    for (unsigned i = 0; i < PTX_SPECIAL_COUNT; i++)
        add_word(specials[i].name, TABLE_SPECIAL, i);
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static const struct word *find(const char *word, size_t length, table which)
{
    pthread_once(&once, fill);
    for (size_t slot = slot_of(word, length, which); words[slot].text != NULL; slot = (slot + 1) & (SLOTS - 1))
        if (words[slot].table == which && words[slot].length == length && memcmp(words[slot].text, word, length) == 0)
            return &words[slot];
    return NULL;
}

ptx_opcode ptx_opcode_of(const char *word, size_t length)
{
    const struct word *found = find(word, length, TABLE_OPCODE);
    return found == NULL ? PTX_OP_UNSUPPORTED : (ptx_opcode)found->value;
}

ptx_type ptx_type_named(const char *word, size_t length)
{
    const struct word *found = find(word, length, TABLE_TYPE);
    return found == NULL ? PTX_NO_TYPE : (ptx_type)found->value;
}

static size_t digits(const char *word, size_t length)
{
    size_t count = 0;
    while (count < length && word[count] >= '0' && word[count] <= '9')
        count++;
    return count;
}

/* m16n8k16, m8n8 */
static bool is_shape(const char *word, size_t length)
{
    size_t at = 0;
    for (int i = 0; i < 3; i++) {
        if (at == length)
            return i == 2;
        if (word[at++] != "mnk"[i])
            return false;
        const size_t count = digits(word + at, length - at);
        if (count == 0 || count > 4)
            return false;
        at += count;
    }
    return at == length;
}

ptx_modifier ptx_modifier_named(const char *word, size_t length)
{
    const struct word *found = find(word, length, TABLE_MODIFIER);
    if (found != NULL)
        return (ptx_modifier)found->value;
    return is_shape(word, length) ? PTX_MOD_SHAPE : PTX_MOD_NONE;
}

/* %pm0 to %pm7, %pm0_64 to %pm7_64, %envreg0 to %envreg31 */
static bool numbered_special(const char *word, size_t length, ptx_special *special, unsigned *component)
{
    size_t at;
    if (length > 3 && memcmp(word, "%pm", 3) == 0) {
        at = 3;
        *special = length > 6 && memcmp(word + length - 3, "_64", 3) == 0 ? PTX_SPECIAL_PM_64 : PTX_SPECIAL_PM;
        length -= *special == PTX_SPECIAL_PM_64 ? 3 : 0;
    } else if (length > 7 && memcmp(word, "%envreg", 7) == 0) {
        at = 7;
        *special = PTX_SPECIAL_ENVREG;
    } else {
        return false;
    }
    if (length - at > 2 || digits(word + at, length - at) != length - at || (length - at == 2 && word[at] == '0'))
        return false;
    *component = 0;
    for (; at < length; at++)
        *component = *component * 10 + (unsigned)(word[at] - '0');
    return *component < specials[*special].components;
}

bool ptx_special_named(const char *word, size_t length, ptx_special *special, unsigned *component)
{
    if (length < 2 || word[0] != '%')
        return false;
    const struct word *found = find(word, length, TABLE_SPECIAL);
    if (found == NULL)
        return numbered_special(word, length, special, component);
    *special = (ptx_special)found->value;
    *component = 0;
    return *special != PTX_SPECIAL_PM && *special != PTX_SPECIAL_PM_64 && *special != PTX_SPECIAL_ENVREG;
}

bool ptx_text_to_double(const char *text, double *value)
{
    pthread_once(&once, fill);
    if (c_locale == (locale_t)0)
        return false;
    char *end;
    *value = strtod_l(text, &end, c_locale);
    return *end == '\0' && end != text;
}
