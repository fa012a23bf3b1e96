/* Between heap.c, registered.c and retire.c. */
#ifndef CUDA_CORE_EMULATOR_HEAP_H
#define CUDA_CORE_EMULATOR_HEAP_H

#include "emulator.h"

/* Memory that readers without a lock may still look at: freed once no reader is left that could. */
typedef struct em_retired {
    struct em_retired *next;
    void *memory;
} em_retired;

void em_retire(void *memory, em_retired *link);

/* Host ranges given by cuMemHostRegister; they lie outside the arena. */
int em_registered_add(em_range *range);     /* CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED when part of it is there */
bool em_registered_remove(em_range *range); /* false: memory is out, and the range stays referred to */
em_range *em_registered_find(uint64_t address);
void em_registered_each(const void *owner, void (*visit)(em_range *range));

#endif
