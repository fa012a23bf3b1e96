/* Any bytes as compiled code: the readers of cubins and of PTX's parameters stay within them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "not true: %s\n", what);
    abort();
}

static void read_parameters(const char *text, size_t size)
{
    cc_error error;
    cc__entries entries;
    expect(cc__entries_parse(text, size, &entries, &error) == 0, "reading parameters fails for lack of memory only");
    for (size_t i = 0; i < entries.count; i++) {
        const cc__entry *entry = &entries.entries[i];
        uint64_t end = 0;
        for (size_t k = 0; k < entry->count; k++) {
            const cc_parameter *parameter = &entry->parameters[k];
            expect(parameter->align != 0 && parameter->offset % parameter->align == 0, "a parameter is aligned");
            expect(parameter->offset >= end, "parameters do not overlap");
            end = (uint64_t)parameter->offset + parameter->size;
        }
    }
    cc__entries_free(&entries);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] = ".version 8.0";
    const char *ptx = NULL;
    size_t length = 0;
    expect(cc__code_size(data, size) <= size, "code is no longer than its bytes");
    if (cc_cubin_ptx(data, size, &ptx, &length)) {
        expect(ptx >= (const char *)data && length <= size - (size_t)(ptx - (const char *)data), "PTX is inside");
        read_parameters(ptx, length);
    }
    read_parameters((const char *)data, size);
    void *joined;
    size_t joined_size = 0;
    cc_error error;
    expect(cc__cubin_add_ptx(data, size, text, sizeof text - 1, &joined, &joined_size, &error) == 0,
           "joining fails for lack of memory only");
    if (joined != NULL && ptx == NULL) {
        expect(cc_cubin_ptx(joined, joined_size, &ptx, &length) && length == sizeof text - 1 &&
                   memcmp(ptx, text, length) == 0,
               "PTX that was added is found again");
    }
    free(joined);
    return 0;
}
