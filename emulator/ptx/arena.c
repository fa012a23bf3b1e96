#include "arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

enum { FIRST_CHUNK = 16 * 1024, LARGEST_CHUNK = 1024 * 1024 };

struct chunk {
    struct chunk *next;
    alignas(16) unsigned char bytes[];
};

struct ptx_arena {
    struct chunk *chunks;
    unsigned char *at;
    size_t left, next_size;
};

ptx_arena *ptx_arena_create(void)
{
    ptx_arena *arena = calloc(1, sizeof *arena);
    if (arena != NULL)
        arena->next_size = FIRST_CHUNK;
    return arena;
}

void ptx_arena_destroy(ptx_arena *arena)
{
    if (arena == NULL)
        return;
    for (struct chunk *chunk = arena->chunks, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    free(arena);
}

static struct chunk *add_chunk(ptx_arena *arena, size_t size)
{
    struct chunk *chunk = calloc(1, sizeof *chunk + size);
    if (chunk == NULL)
        return NULL;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    return chunk;
}

void *ptx_arena_take(ptx_arena *arena, size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + 15) & ~(size_t)15;
    if (size <= arena->left) {
        void *taken = arena->at;
        arena->at += size;
        arena->left -= size;
        return taken;
    }
    if (size > arena->next_size / 4) { /* large pieces stand alone, the chunk in use stays in use */
        struct chunk *chunk = add_chunk(arena, size);
        return chunk == NULL ? NULL : chunk->bytes;
    }
    struct chunk *chunk = add_chunk(arena, arena->next_size);
    if (chunk == NULL)
        return NULL;
    arena->at = chunk->bytes + size;
    arena->left = arena->next_size - size;
    if (arena->next_size < LARGEST_CHUNK)
        arena->next_size *= 2;
    return chunk->bytes;
}
