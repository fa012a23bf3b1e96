/* A full mnemonic to opcode, types and modifiers, and to the forms of forms.def that it fits. */
#include "parser.h"

#include <string.h>

static const struct row {
    ptx_opcode op;
    const char *suffixes, *operands;
} rows[] = {
#define FORM(op, suffixes, operands) {PTX_OP_##op, suffixes, operands},
#include "forms.def"
#undef FORM
};

enum { ROWS = sizeof rows / sizeof rows[0], MAX_ELEMENTS = 32, MAX_WORDS = 32 };

typedef struct span {
    const char *start;
    size_t length;
    bool is_shape; /* m16n8k16 */
} span;

/* ---- decoding -------------------------------------------------------------------------------- */

static size_t split(const char *spelling, size_t length, span words[MAX_WORDS])
{
    size_t count = 0;
    const char *end = spelling + length;
    for (const char *at = spelling; count < MAX_WORDS; at++) {
        const char *start = at;
        while (at < end && *at != '.')
            at++;
        words[count++] = (span){.start = start, .length = (size_t)(at - start)};
        if (at == end)
            return count;
    }
    return MAX_WORDS + 1;
}

/* The longest run of words from the start that is an opcode; how many words it takes. */
static size_t find_opcode(const span *words, size_t count, ptx_opcode *op)
{
    for (size_t taken = count < 6 ? count : 6; taken > 0; taken--) {
        const char *end = words[taken - 1].start + words[taken - 1].length;
        *op = ptx_opcode_of(words[0].start, (size_t)(end - words[0].start));
        if (*op != PTX_OP_UNSUPPORTED)
            return taken;
    }
    return 0;
}

static bool compares(ptx_opcode op)
{
    return op == PTX_OP_SET || op == PTX_OP_SETP || op == PTX_OP_VSET || op == PTX_OP_VSET2 || op == PTX_OP_VSET4;
}

static void read_shape(ptx_mnemonic *mnemonic, span word)
{
    int part = -1;
    for (size_t i = 0; i < word.length; i++) {
        if (!ptx_is_digit(word.start[i]))
            part++;
        else
            mnemonic->shape[part] = (uint16_t)(mnemonic->shape[part] * 10 + (word.start[i] - '0'));
    }
}

static void add_modifier(ptx_mnemonic *mnemonic, ptx_modifier modifier, span word)
{
    ptx_class class_of = ptx_class_of(modifier);
    if (compares(mnemonic->op) && (modifier == PTX_MOD_LO || modifier == PTX_MOD_HI || modifier == PTX_MOD_NAN))
        class_of = PTX_CLASS_COMPARISON;
    mnemonic->suffixes[mnemonic->suffix_count++] = (uint16_t)modifier;
    mnemonic->set[modifier / 64] |= UINT64_C(1) << (modifier % 64);
    if (class_of != PTX_CLASS_FLAG && mnemonic->by_class[class_of] == PTX_MOD_NONE)
        mnemonic->by_class[class_of] = (uint16_t)modifier;
    if (class_of == PTX_CLASS_VECTOR)
        mnemonic->vector = (uint8_t)(word.start[1] - '0');
    if (modifier == PTX_MOD_SHAPE)
        read_shape(mnemonic, word);
    const ptx_space space = ptx_space_of(modifier);
    if (space == PTX_SPACE_GENERIC)
        return;
    if (mnemonic->space == PTX_SPACE_GENERIC)
        mnemonic->space = (uint8_t)space;
    else
        mnemonic->space_to = (uint8_t)space;
}

/* False: a word that no table has. */
static bool decode(ptx_mnemonic *mnemonic, span *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const ptx_type type = ptx_type_named(words[i].start, words[i].length);
        const ptx_modifier modifier = ptx_modifier_named(words[i].start, words[i].length);
        words[i].is_shape = modifier == PTX_MOD_SHAPE;
        if (type != PTX_NO_TYPE && mnemonic->type_count < PTX_MAX_TYPES)
            mnemonic->types[mnemonic->type_count++] = (uint8_t)type;
        else if (modifier != PTX_MOD_NONE && mnemonic->suffix_count < PTX_MAX_SUFFIXES)
            add_modifier(mnemonic, modifier, words[i]);
        else
            return false;
    }
    return true;
}

/* ---- matching suffixes ----------------------------------------------------------------------- */

/* Whether the alternatives "a|b|c" of one element, which end at a blank, '?' or the end, have the word. */
static bool has_word(const char *element, span word)
{
    while (*element != '\0' && *element != ' ' && *element != '?') {
        size_t length = strcspn(element, "|? ");
        if (length == word.length && memcmp(element, word.start, length) == 0)
            return true;
        if (word.is_shape && length == 1 && *element == '#')
            return true;
        element += length;
        element += *element == '|' ? 1 : 0;
    }
    return false;
}

static bool matches(const char *pattern, const span *words, size_t count)
{
    const char *elements[MAX_ELEMENTS];
    bool used[MAX_ELEMENTS] = {false};
    size_t element_count = 0;
    if (strcmp(pattern, "*") == 0)
        return true;
    for (const char *at = pattern; *at != '\0' && element_count < MAX_ELEMENTS; at += strspn(at, " ")) {
        elements[element_count++] = at;
        at += strcspn(at, " ");
    }
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < element_count && (used[at] || !has_word(elements[at], words[i])))
            at++;
        if (at == element_count)
            return false;
        used[at] = true;
    }
    for (size_t i = 0; i < element_count; i++)
        if (!used[i] && elements[i][strcspn(elements[i], "? ")] != '?')
            return false;
    return true;
}

/* ---- making slots ---------------------------------------------------------------------------- */

static uint8_t widened(uint8_t type)
{
    switch (type) {
    case PTX_U16:
        return PTX_U32;
    case PTX_S16:
        return PTX_S32;
    case PTX_U32:
        return PTX_U64;
    default:
        return PTX_S64;
    }
}

static uint8_t slot_type(const ptx_mnemonic *mnemonic, const char *text, size_t length)
{
    const bool wide = length == 2 && text[0] == 'w';
    if (wide || (length == 1 && ptx_is_digit(*text))) {
        const uint8_t type = mnemonic->types[text[wide ? 1 : 0] - '0'];
        return wide ? widened(type) : type;
    }
    if (length == 1)
        return *text == 'a' ? PTX_ADDRESS_TYPE : PTX_OWN_TYPE;
    return (uint8_t)ptx_type_named(text, length);
}

static ptx_slot make_slot(const ptx_mnemonic *mnemonic, const char *text, size_t length)
{
    ptx_slot slot = {.role = *text, .type = PTX_OWN_TYPE, .vector = 1};
    const char *end = text + length;
    if (end[-1] == '?') {
        slot.optional = true;
        end--;
    }
    for (text++; text < end; text++) {
        if (*text == ':') {
            slot.type = slot_type(mnemonic, text + 1, (size_t)(end - text - 1));
            break;
        }
        if (*text == '#') {
            text++;
            slot.vector = *text == '*' ? 0 : (uint16_t)(*text - '0');
        }
        slot.wider |= *text == '~';
        slot.pair |= *text == '|' || *text == '&';
        slot.pair_required |= *text == '&';
        if (*text == 'v')
            slot.vector = mnemonic->vector;
    }
    return slot;
}

static ptx_form *make_form(ptx_parser *parser, const ptx_mnemonic *mnemonic, const char *operands)
{
    ptx_slot slots[PTX_MAX_OPERANDS];
    uint8_t count = 0;
    bool any = false;
    for (const char *at = operands; *at != '\0'; at += strspn(at, " ")) {
        const size_t length = strcspn(at, " ");
        any |= *at == '*';
        slots[count++] = make_slot(mnemonic, at, length);
        at += length;
    }
    ptx_form *form = ptx_take(parser, sizeof *form + count * sizeof slots[0]);
    form->any = any;
    form->count = count;
    memcpy(form->slots, slots, count * sizeof slots[0]);
    return form;
}

static void find_forms(ptx_parser *parser, ptx_mnemonic *mnemonic, const span *words, size_t count)
{
    const ptx_form **next = &mnemonic->form;
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].op != mnemonic->op || !matches(rows[i].suffixes, words, count))
            continue;
        ptx_form *form = make_form(parser, mnemonic, rows[i].operands);
        *next = form;
        next = &form->next;
    }
}

static ptx_mnemonic *make_mnemonic(ptx_parser *parser, const char *spelling, size_t length)
{
    ptx_mnemonic *made = ptx_take(parser, sizeof *made);
    span words[MAX_WORDS];
    const size_t count = split(spelling, length, words);
    made->spelling = spelling;
    made->vector = 1;
    made->index = (uint32_t)parser->mnemonics.count;
    *(ptx_mnemonic **)ptx_push(parser, &parser->mnemonics) = made;
    const size_t taken = count > MAX_WORDS ? 0 : find_opcode(words, count, &made->op);
    if (taken > 0 && decode(made, words + taken, count - taken))
        find_forms(parser, made, words + taken, count - taken);
    if (made->form == NULL)
        made->op = PTX_OP_UNSUPPORTED;
    return made;
}

ptx_mnemonic *ptx_find_mnemonic(ptx_parser *parser, const char *spelling, size_t length)
{
    ptx_name *name = ptx_intern(parser, spelling, length);
    if (name->mnemonic == NULL)
        name->mnemonic = make_mnemonic(parser, name->text, length);
    return name->mnemonic;
}
