/* Where the PTX came from: .file, .loc, and the names in .section .debug_str that .loc refers to. The other debug
 * sections are of no use to an emulator and are read over. */
#include "parser.h"

#include <stdio.h>
#include <string.h>

/* .file 1 "name" [, timestamp, size] */
void ptx_parse_file(ptx_parser *parser)
{
    const uint32_t number = ptx_expect_count(parser, "a file number");
    if (parser->token.kind != PTX_TOKEN_STRING)
        ptx_fail(parser, &parser->token, "expected the file name in quotes");
    ptx_file *file = ptx_push(parser, &parser->files);
    file->number = number;
    file->name = ptx_text(parser, parser->token.start, parser->token.length);
    ptx_advance(parser);
    while (ptx_take_mark(parser, ','))
        ptx_parse_integer(parser);
}

static void parse_place(ptx_parser *parser, ptx_location *place)
{
    place->file_number = ptx_expect_count(parser, "a file number");
    place->line = ptx_expect_count(parser, "a line number");
    place->column = ptx_expect_count(parser, "a column");
}

/* Places are found again by a spelling that no name can have. */
static ptx_name *place_name(ptx_parser *parser, const ptx_location *place)
{
    char key[48];
    const int length = snprintf(key, sizeof key, "%u %u %u", place->file_number, place->line, place->column);
    return ptx_intern(parser, key, (size_t)length);
}

static uint32_t add_location(ptx_parser *parser, const ptx_location *place)
{
    ptx_name *name = place_name(parser, place);
    const uint32_t index = (uint32_t)parser->locations.count;
    ptx_location *made = ptx_push(parser, &parser->locations);
    *made = *place;
    name->last_location = index;
    if (name->first_location == 0)
        name->first_location = index;
    made->place = name->first_location;
    return index;
}

/* The call that a piece of code was inlined at: the latest .loc of that place, else a new one. */
static uint32_t location_of(ptx_parser *parser, const ptx_location *place)
{
    const ptx_name *name = place_name(parser, place);
    return name->last_location != 0 ? name->last_location : add_location(parser, place);
}

/* .loc file line column [, function_name label [+ offset], inlined_at file line column] */
void ptx_parse_loc(ptx_parser *parser)
{
    ptx_location place = {0};
    parse_place(parser, &place);
    ptx_inlined named = {0};
    while (ptx_take_mark(parser, ',')) {
        const ptx_token what = ptx_expect_name(parser, "function_name or inlined_at");
        if (what.length == 13 && memcmp(what.start, "function_name", 13) == 0) {
            const ptx_token label = ptx_expect_name(parser, "a label of .debug_str");
            named.label = ptx_intern(parser, label.start, label.length);
            if (ptx_take_mark(parser, '+'))
                named.offset = ptx_expect_count(parser, "an offset");
        } else if (what.length == 10 && memcmp(what.start, "inlined_at", 10) == 0) {
            ptx_location call = {0};
            parse_place(parser, &call);
            place.inlined_at = location_of(parser, &call);
        } else {
            ptx_fail(parser, &what, "expected function_name or inlined_at");
        }
    }
    parser->location = add_location(parser, &place);
    if (named.label != NULL && place.inlined_at != 0) {
        named.location = parser->location;
        *(ptx_inlined *)ptx_push(parser, &parser->inlined) = named;
    }
}

static void end_string(ptx_parser *parser, ptx_name *label)
{
    if (label != NULL) {
        label->debug_text = ptx_text(parser, parser->bytes.items, parser->bytes.count);
        label->debug_length = parser->bytes.count;
    }
    parser->bytes.count = 0;
}

static void parse_debug_bytes(ptx_parser *parser)
{
    do {
        const int64_t value = ptx_parse_integer(parser);
        *(unsigned char *)ptx_push(parser, &parser->bytes) = (unsigned char)value;
    } while (ptx_take_mark(parser, ','));
}

static void parse_strings(ptx_parser *parser)
{
    ptx_name *label = NULL;
    while (!ptx_at_mark(parser, '}')) {
        if (ptx_take_word(parser, "b8")) {
            parse_debug_bytes(parser);
            ptx_take_mark(parser, ';');
            continue;
        }
        const ptx_token next = ptx_expect_name(parser, "a label or .b8");
        ptx_expect(parser, ':');
        end_string(parser, label);
        label = ptx_intern(parser, next.start, next.length);
    }
    end_string(parser, label);
}

/* .section name { ... } */
void ptx_parse_section(ptx_parser *parser)
{
    if (parser->token.kind != PTX_TOKEN_WORD && parser->token.kind != PTX_TOKEN_NAME)
        ptx_fail(parser, &parser->token, "expected the name of a section");
    const bool strings = ptx_at_word(parser, "debug_str");
    ptx_advance(parser);
    ptx_expect(parser, '{');
    if (strings)
        parse_strings(parser);
    for (uint32_t depth = 0; depth > 0 || !ptx_at_mark(parser, '}'); ptx_advance(parser)) {
        if (parser->token.kind == PTX_TOKEN_END)
            ptx_expect(parser, '}');
        depth += ptx_at_mark(parser, '{') ? 1u : 0u;
        depth -= ptx_at_mark(parser, '}') ? 1u : 0u;
    }
    ptx_expect(parser, '}');
}

static const char *file_name(const ptx_parser *parser, uint32_t number)
{
    for (size_t i = 0; i < parser->files.count; i++)
        if (PTX_ITEM(parser->files, ptx_file, i).number == number)
            return PTX_ITEM(parser->files, ptx_file, i).name;
    return "";
}

/* At the end of the module, because .file and .debug_str may follow what refers to them. */
void ptx_finish_locations(ptx_parser *parser)
{
    uint32_t number = 0;
    const char *name = file_name(parser, number);
    for (size_t i = 0; i < parser->locations.count; i++) {
        ptx_location *location = &PTX_ITEM(parser->locations, ptx_location, i);
        if (location->file_number != number) {
            number = location->file_number;
            name = file_name(parser, number);
        }
        location->file = i == 0 ? "" : name;
    }
    for (size_t i = 0; i < parser->inlined.count; i++) {
        const ptx_inlined *named = &PTX_ITEM(parser->inlined, ptx_inlined, i);
        if (named->offset < named->label->debug_length)
            PTX_ITEM(parser->locations, ptx_location, named->location).function =
                named->label->debug_text + named->offset;
    }
}
