/* Physical memory of cuMemCreate: a file without a name, which is mapped wherever a program wants it, also in another
 * process. Behind the memory the file holds what an importer must know. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api.h"

pthread_mutex_t em_virtual_lock = PTHREAD_MUTEX_INITIALIZER;

typedef struct imprint {
    uint64_t magic, size;
    CUmemAllocationProp props;
} imprint;

#define MAGIC UINT64_C(0x63756461636f7265)

static int ordinal_of(const CUmemAllocationProp *props)
{
    return props->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? props->location.id : -1;
}

static int wrap(int file, const imprint *about, em_physical **made)
{
    em_physical *physical = em_object_new(EM_KIND_PHYSICAL, sizeof *physical);
    if (physical == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    physical->file = file;
    physical->size = about->size;
    physical->props = about->props;
    physical->ordinal = ordinal_of(&about->props);
    physical->handles = 1;
    *made = physical;
    return CUDA_SUCCESS;
}

static int make_file(const imprint *about)
{
    int file = memfd_create("cuda_core", MFD_CLOEXEC);
    if (file < 0)
        return -1;
    if (ftruncate(file, (off_t)about->size) == 0 &&
        pwrite(file, about, sizeof *about, (off_t)about->size) == (ssize_t)sizeof *about)
        return file;
    close(file);
    return -1;
}

int em_physical_new(uint64_t size, const CUmemAllocationProp *props, em_physical **made)
{
    const imprint about = {.magic = MAGIC, .size = size, .props = *props};
    const int ordinal = ordinal_of(props);
    if (ordinal >= 0 && !em_device_charge(&em_devices[ordinal], size))
        return em_explain(CUDA_ERROR_OUT_OF_MEMORY,
                          "%llu bytes asked for; device %d has %llu, of which %llu are in use",
                          (unsigned long long)size, ordinal, (unsigned long long)em_devices[ordinal].memory,
                          (unsigned long long)em_devices[ordinal].memory_used);
    const int file = make_file(&about);
    int status = file < 0 ? em_explain(CUDA_ERROR_OUT_OF_MEMORY, "the host has no memory, or no file, for %llu bytes",
                                       (unsigned long long)size)
                          : wrap(file, &about, made);
    if (status == CUDA_SUCCESS) {
        (*made)->charged = ordinal >= 0;
        return status;
    }
    if (file >= 0)
        close(file);
    if (ordinal >= 0)
        em_device_refund(&em_devices[ordinal], size);
    return status;
}

static bool read_imprint(int file, imprint *about)
{
    struct stat state;
    return fstat(file, &state) == 0 && S_ISREG(state.st_mode) && state.st_size > (off_t)sizeof *about &&
           pread(file, about, sizeof *about, state.st_size - (off_t)sizeof *about) == (ssize_t)sizeof *about &&
           about->magic == MAGIC && about->size == (uint64_t)state.st_size - sizeof *about &&
           about->size % EM_GRANULARITY == 0;
}

int em_physical_import(int file, em_physical **made)
{
    imprint about;
    if (!read_imprint(file, &about))
        return em_explain(CUDA_ERROR_INVALID_VALUE,
                          "file descriptor %d is not one that cuMemExportToShareableHandle gave", file);
    if (ordinal_of(&about.props) >= 0 && em_device_get(ordinal_of(&about.props)) == NULL)
        return em_explain(CUDA_ERROR_INVALID_DEVICE, "the memory is of device %d, which this process has not",
                          ordinal_of(&about.props));
    const int own = fcntl(file, F_DUPFD_CLOEXEC, 0);
    if (own < 0)
        return em_explain(CUDA_ERROR_OUT_OF_MEMORY, "the process has no file descriptor left");
    const int status = wrap(own, &about, made);
    if (status != CUDA_SUCCESS)
        close(own);
    return status;
}

void em_physical_settle(em_physical *physical)
{
    if (physical->handles != 0 || physical->mappings != 0)
        return;
    close(physical->file);
    if (physical->charged)
        em_device_refund(&em_devices[physical->ordinal], physical->size);
    em_object_close(&physical->object);
    em_object_recycle(EM_KIND_PHYSICAL, &physical->object);
}
