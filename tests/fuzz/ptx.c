/* Any text as PTX: it is refused with a message, or what it says can be written down and read again to the same. Then
 * the module is loaded and each kernel made ready to run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulator.h"
#include "ptx/ir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "not true: %s\n", what);
    abort();
}

static void load(const char *text, size_t size)
{
    static const em_limits limits = {.ordinal = 0, .cc_major = 9, .cc_minor = 0, .multiprocessors = 1};
    em_detail detail = {0};
    em_module *module = NULL;
    if (em_module_load(text, size, &limits, &module, &detail) != 0) {
        expect(detail.text[0] != '\0', "a module that does not load says why");
        return;
    }
    for (size_t i = 0; i < em_module_kernel_count(module); i++) {
        em_detail refused = {0};
        if (em_kernel_check(em_module_kernel_at(module, i), &refused) != 0)
            expect(refused.text[0] != '\0', "a kernel that is refused says why");
    }
    em_module_unload(module);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ptx_error error;
    ptx_module *module = ptx_parse((const char *)data, size, &error);
    if (module == NULL) {
        expect(error.message[0] != '\0' && !error.out_of_memory, "a refusal has a message");
        return 0;
    }
    char *once = ptx_dump(module);
    ptx_module_free(module);
    expect(once != NULL, "what was parsed can be dumped");
    module = ptx_parse(once, strlen(once), &error);
    expect(module != NULL, "a dump can be parsed");
    char *twice = ptx_dump(module);
    ptx_module_free(module);
    expect(twice != NULL && strcmp(once, twice) == 0, "a dump does not change when it is parsed and dumped again");
    free(once);
    free(twice);
    load((const char *)data, size);
    return 0;
}
