/* What the targets written in Python share: CPython inside the fuzzer's own process, so that the extension, core and
 * the emulated driver are all watched by the sanitizers and give coverage. python/<target>.py says what is done with an
 * input; it sees the C of this folder as the module `fuzz`. */
#ifndef CUDA_CORE_FUZZ_EMBED_H
#define CUDA_CORE_FUZZ_EMBED_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ends the run with a finding. */
_Noreturn void broken(const char *what);

/* input.c: where the bytes of an input go. */
void input_set(const uint8_t *data, size_t size);
extern PyMethodDef input_functions[];

/* tensor.c: capsules of DLPack, and how many of their tensors were not given back yet. */
long tensors_alive(void);
extern PyMethodDef tensor_functions[];

/* launch.c: kernels with a signature of the input's choice, and what a launch would hand to the driver. */
void launch_reset(void);
extern PyMethodDef watch_functions[];

#endif
