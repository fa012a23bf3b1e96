/* Prints what the parser made of a PTX file, as PTX: ./dump_frontend FILE */
#include "check.h"

int main(int count, char **arguments)
{
    size_t length;
    ptx_error error;
    if (count != 2)
        return 2;
    char *text = read_file(arguments[1], &length);
    ptx_module *module = ptx_parse(text, length, &error);
    free(text);
    if (module == NULL) {
        fprintf(stderr, "%s:%u:%u: %s\n%s\n", arguments[1], error.line, error.column, error.message, error.excerpt);
        return 1;
    }
    char *dump = ptx_dump(module);
    fputs(dump != NULL ? dump : "", stdout);
    free(dump);
    ptx_module_free(module);
    return report();
}
