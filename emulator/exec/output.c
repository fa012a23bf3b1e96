/* What printf of a launch wrote: kept by block, written in the order of the blocks when the launch ends or when the
 * limit is reached. One call's text is never torn. */
#include <stdlib.h>

#include "engine.h"

typedef struct piece {
    uint64_t block, serial;
    size_t length;
    char text[];
} piece;

struct em_output {
    piece **pieces;
    size_t count, capacity;
    uint64_t bytes, serial;
};

static int compare(const void *one, const void *other)
{
    const piece *a = *(piece *const *)one, *b = *(piece *const *)other;
    if (a->block != b->block)
        return a->block < b->block ? -1 : 1;
    return a->serial < b->serial ? -1 : a->serial > b->serial;
}

static void write_pieces(struct em_output *output)
{
    qsort(output->pieces, output->count, sizeof(piece *), compare);
    for (size_t i = 0; i < output->count; i++) {
        fwrite(output->pieces[i]->text, 1, output->pieces[i]->length, stdout);
        free(output->pieces[i]);
    }
    fflush(stdout);
    output->count = 0;
    output->bytes = 0;
}

static bool have_room(struct em_output *output)
{
    if (output->count < output->capacity)
        return true;
    const size_t capacity = output->capacity != 0 ? 2 * output->capacity : 64;
    piece **grown = realloc(output->pieces, capacity * sizeof(piece *));
    if (grown == NULL)
        return false;
    output->pieces = grown;
    output->capacity = capacity;
    return true;
}

bool em_output_write(em_grid *grid, const em_block *block, const char *text, size_t length)
{
    piece *made = malloc(sizeof *made + length);
    if (made == NULL)
        return false;
    made->block = block->linear;
    made->length = length;
    memcpy(made->text, text, length);
    pthread_mutex_lock(&grid->lock);
    if (grid->output == NULL)
        grid->output = calloc(1, sizeof *grid->output);
    const bool kept = grid->output != NULL && have_room(grid->output);
    if (kept) {
        made->serial = grid->output->serial++;
        grid->output->pieces[grid->output->count++] = made;
        grid->output->bytes += length;
        if (grid->output->bytes > grid->launch->printf_limit)
            write_pieces(grid->output);
    } else {
        free(made);
    }
    pthread_mutex_unlock(&grid->lock);
    return kept;
}

void em_output_finish(em_grid *grid)
{
    if (grid->output == NULL)
        return;
    write_pieces(grid->output);
    free(grid->output->pieces);
    free(grid->output);
    grid->output = NULL;
}
