/* Where launches were made, for those who ask to be told: a kernel's name with a file and a line. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each is made once and kept for the life of the process, since a failure may ask for it at any time. A program has as
 * many as it has lines that launch; one that makes up names of files does not fill the memory with them. */
enum { LISTS = 256, MOST = 1 << 16 };

static pthread_mutex_t labels_lock = PTHREAD_MUTEX_INITIALIZER;
static cc__name *labels[LISTS];
static unsigned count;

static cc__name **list_of(const char *text)
{
    unsigned hash = 5381;
    for (; *text; text++)
        hash = hash * 33 + (unsigned char)*text;
    return &labels[hash % LISTS];
}

static const char *find_lock_held(const char *text)
{
    cc__name **list = list_of(text);
    for (const cc__name *each = *list; each; each = each->next)
        if (strcmp(each->text, text) == 0)
            return each->text;
    cc__name *made = count < MOST ? cc__name_new(text) : NULL;
    if (!made)
        return NULL;
    count++;
    made->next = *list;
    *list = made;
    return made->text;
}

const char *cc__launch_label(const char *kernel, const char *file, int line)
{
    char text[512];
    snprintf(text, sizeof text, "%.160s (%s%.240s:%d)", kernel, strlen(file) > 240 ? "..." : "",
             strlen(file) > 240 ? file + strlen(file) - 240 : file, line);
    cc__lock(&labels_lock);
    const char *found = find_lock_held(text);
    cc__unlock(&labels_lock);
    return found ? found : kernel;
}
