/* planted_main FAULT: commits one of the faults of planted.c as a C test would. */
#include <string.h>

int planted_overflow(int size);
int planted_undefined(int more);
int planted_leak(int size);

int main(int count, char **arguments)
{
    const char *fault = count == 2 ? arguments[1] : "";
    if (strcmp(fault, "overflow") == 0)
        return planted_overflow(8) == 0;
    if (strcmp(fault, "undefined") == 0)
        return planted_undefined(8) == 0;
    if (strcmp(fault, "leak") == 0)
        return planted_leak(8) == 0;
    return strcmp(fault, "nothing") != 0;
}
