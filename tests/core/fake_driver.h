/* A driver in a hundred lines: two devices whose memory is the host's and whose streams run at once. It counts calls
 * and live objects and fails where it is told to, which no real driver does. */
#ifndef CC_TEST_FAKE_DRIVER_H
#define CC_TEST_FAKE_DRIVER_H

#include "internal.h"

enum { FAKE_DEVICES = 2 };

typedef struct fake_state {
    int calls; /* of anything but errors' names */
    const char *last_call, *failed_call;
    int fail_call;         /* the number of the call to fail, counted from 1; 0: none */
    const char *fail_name; /* or every call of this function */
    CUresult fail_code;
    bool load_lazily;       /* loading code that is nonsense succeeds, getting its kernel does not */
    const char *absent;     /* entry point that the resolver denies */
    const char *unresolved; /* and one that it fails to look for, with CUDA_ERROR_NOT_PERMITTED */
    bool emulator_detail;   /* offer cuEmulatorErrorDetail */
    int live_streams, live_events, live_pools, live_buffers, live_libraries;
    bool events_done; /* what cuEventQuery says */
    int version;      /* of the driver; 13000 at first */
    /* the one kernel, "add(double *, int, float)" */
    int kernel_max_threads, kernel_static_shared, dynamic_shared;
    unsigned last_shared;
    CUstream last_free_stream;
    /* the calls that order streams and free, in their order; grows until a test sets step_count to 0 */
    struct fake_step {
        const char *name;
        CUstream stream;
        CUevent event;
    } steps[64];
    int step_count;
    int unified_host_type; /* memory type that cuPointerGetAttributes reports */
    int pageable_access;   /* CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS */
} fake_state;

extern fake_state fake;

void fake_reset(void);
CUresult fake_resolve(void *user, const char *name, int version, void **address);
int fake_open(cc_error *error);
int fake_live(void); /* all live objects together */
void fake_unmake_all(void);

/* PTX of the fake's kernel, as a library's code. */
extern const char fake_ptx[];

#endif
