/* Memory of one module: taken in pieces, given back at once. */
#ifndef CUDA_CORE_PTX_ARENA_H
#define CUDA_CORE_PTX_ARENA_H

#include <stddef.h>

typedef struct ptx_arena ptx_arena;

ptx_arena *ptx_arena_create(void);
void ptx_arena_destroy(ptx_arena *arena);
/* Zeroed, aligned for any type; NULL: out of memory. */
void *ptx_arena_take(ptx_arena *arena, size_t size);

#endif
