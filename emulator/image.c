/* What a program hands over as code, and the PTX in it: text, a cubin that carries PTX, or a fat binary. */
#include <ctype.h>
#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_core_emulator.h"
#include "library.h"

#define FATBIN_MAGIC         0xba55ed50u
#define FATBIN_WRAPPER_MAGIC 0x466243b1u

enum { FATBIN_KIND_PTX = 1, FATBIN_LZ4 = 0x2000, FATBIN_ZSTD = 0x8000 };

typedef struct fatbin_wrapper {
    uint32_t magic, version;
    const void *data;
} fatbin_wrapper;

typedef struct fatbin_header {
    uint32_t magic;
    uint16_t version, header_size;
    uint64_t size; /* of the entries */
} fatbin_header;

typedef struct fatbin_entry {
    uint16_t kind, version;
    uint32_t header_size;
    uint64_t size; /* of the payload, with padding */
    uint32_t compressed_size, options_offset;
    uint16_t minor, major;
    uint32_t target; /* 80 for compute_80 */
    uint32_t name_offset, name_size;
    uint64_t flags, reserved, uncompressed_size;
} fatbin_entry;

static int keep_text(const char *text, size_t length, char **ptx, size_t *kept)
{
    *ptx = malloc(length + 1);
    if (*ptx == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(*ptx, text, length);
    (*ptx)[length] = '\0';
    *kept = strlen(*ptx); /* a payload may be padded with zeros */
    return CUDA_SUCCESS;
}

/* ---- cubins ---------------------------------------------------------------------------------------------------------
 */

static bool inside(uint64_t offset, uint64_t length, uint64_t size)
{
    return offset <= size && length <= size - offset;
}

static int read_elf(const char *image, size_t size, char **ptx, size_t *length, em_detail *detail)
{
    Elf64_Ehdr header;
    memcpy(&header, image, sizeof header);
    if (size == 0) /* the caller gave none: what the header spans is what there must be */
        size = SIZE_MAX;
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr) ||
        !inside(header.e_shoff, (uint64_t)header.e_shnum * sizeof(Elf64_Shdr), size))
        return em_fail(detail, CUDA_ERROR_INVALID_IMAGE, "the ELF image's section table is damaged or cut off");
    for (unsigned int i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, image + header.e_shoff + i * sizeof section, sizeof section);
        if (section.sh_type != SHT_CUDA_CORE_PTX)
            continue;
        if (!inside(section.sh_offset, section.sh_size, size))
            return em_fail(detail, CUDA_ERROR_INVALID_IMAGE, "the cubin's PTX section is cut off");
        return keep_text(image + section.sh_offset, section.sh_size, ptx, length);
    }
    return em_fail(detail, CUDA_ERROR_NO_BINARY_FOR_GPU,
                   "the emulated device runs PTX, not machine code, and this cubin carries none: compile to PTX, or "
                   "compile with cuda_core, which puts the PTX into its cubins");
}

/* ---- fat binaries ------------------------------------------------------------------------------------------------ */

/* The LZ4 block format. Returns the bytes written, or 0 for damaged input. */
static size_t expand_lz4(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size)
{
    size_t at = 0, written = 0;
    while (at < in_size) {
        uint8_t token = in[at++];
        size_t literals = token >> 4;
        for (uint8_t more = 255; literals >= 15 && more == 255 && at < in_size; literals += more)
            more = in[at++];
        if (literals > in_size - at || literals > out_size - written)
            return 0;
        memcpy(out + written, in + at, literals);
        at += literals;
        written += literals;
        if (at >= in_size)
            return written; /* the last sequence is literals only */
        if (in_size - at < 2)
            return 0;
        size_t distance = in[at] | (size_t)in[at + 1] << 8;
        at += 2;
        size_t match = token & 15;
        for (uint8_t more = 255; match >= 15 && more == 255 && at < in_size; match += more)
            more = in[at++];
        match += 4;
        if (distance == 0 || distance > written || match > out_size - written)
            return 0;
        for (size_t i = 0; i < match; i++, written++)
            out[written] = out[written - distance];
    }
    return written;
}

static int expand_zstd(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size, em_detail *detail)
{
    void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    size_t (*decompress)(void *, size_t, const void *, size_t) = NULL;
    unsigned int (*is_error)(size_t) = NULL;
    if (library != NULL) {
        *(void **)&decompress = dlsym(library, "ZSTD_decompress");
        *(void **)&is_error = dlsym(library, "ZSTD_isError");
    }
    int status = CUDA_SUCCESS;
    if (decompress == NULL || is_error == NULL) {
        status = em_fail(detail, CUDA_ERROR_NOT_SUPPORTED,
                         "the fat binary's PTX is compressed with zstd and libzstd.so.1 was not found: install it, or "
                         "compile with --no-compress");
    } else {
        size_t written = decompress(out, out_size, in, in_size);
        if (is_error(written) || written != out_size)
            status = em_fail(detail, CUDA_ERROR_INVALID_IMAGE, "the fat binary's compressed PTX is damaged");
    }
    if (library != NULL)
        dlclose(library);
    return status;
}

static int read_payload(const fatbin_entry *entry, const char *payload, char **ptx, size_t *length, em_detail *detail)
{
    if (entry->uncompressed_size == 0)
        return keep_text(payload, entry->size, ptx, length);
    if (entry->uncompressed_size > UINT64_C(1) << 32 || entry->compressed_size > entry->size)
        return em_fail(detail, CUDA_ERROR_INVALID_IMAGE, "the fat binary's PTX entry is damaged");
    char *text = malloc(entry->uncompressed_size + 1);
    if (text == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    int status = CUDA_SUCCESS;
    const uint8_t *in = (const uint8_t *)payload;
    if (entry->flags & FATBIN_ZSTD) {
        status = expand_zstd(in, entry->compressed_size, (uint8_t *)text, entry->uncompressed_size, detail);
    } else if (entry->flags & FATBIN_LZ4) {
        size_t written = expand_lz4(in, entry->compressed_size, (uint8_t *)text, entry->uncompressed_size);
        if (written != entry->uncompressed_size)
            status = em_fail(detail, CUDA_ERROR_INVALID_IMAGE, "the fat binary's compressed PTX is damaged");
    } else {
        status = em_fail(detail, CUDA_ERROR_NOT_SUPPORTED,
                         "the fat binary's PTX is compressed in a way that is not known here (flags 0x%llx): compile "
                         "with --no-compress",
                         (unsigned long long)entry->flags);
    }
    if (status != CUDA_SUCCESS) {
        free(text);
        return status;
    }
    text[entry->uncompressed_size] = '\0';
    *ptx = text;
    *length = strlen(text);
    return CUDA_SUCCESS;
}

/* Of the PTX entries that the device can run, the one for the highest target. */
static int read_fatbin(const char *image, size_t size, const em_limits *limits, char **ptx, size_t *length,
                       em_detail *detail)
{
    fatbin_header header;
    memcpy(&header, image, sizeof header);
    if (size != 0 && !inside(header.header_size, header.size, size))
        return em_fail(detail, CUDA_ERROR_INVALID_IMAGE, "the fat binary is cut off");
    fatbin_entry best = {0};
    const char *best_payload = NULL;
    unsigned int seen = 0, lowest = UINT32_MAX;
    unsigned int device = (unsigned int)(limits->cc_major * 10 + limits->cc_minor);
    for (uint64_t at = 0; inside(at, sizeof best, header.size);) {
        const char *where = image + header.header_size + at;
        fatbin_entry entry;
        memcpy(&entry, where, sizeof entry);
        if (entry.header_size < sizeof entry || !inside(at + entry.header_size, entry.size, header.size))
            return em_fail(detail, CUDA_ERROR_INVALID_IMAGE, "an entry of the fat binary is damaged");
        seen++;
        if (entry.kind == FATBIN_KIND_PTX) {
            lowest = entry.target < lowest ? entry.target : lowest;
            if (entry.target <= device && (best_payload == NULL || entry.target > best.target)) {
                best = entry;
                best_payload = where + entry.header_size;
            }
        }
        at += entry.header_size + entry.size;
    }
    if (best_payload != NULL)
        return read_payload(&best, best_payload, ptx, length, detail);
    if (lowest != UINT32_MAX)
        return em_fail(detail, CUDA_ERROR_NO_BINARY_FOR_GPU,
                       "the fat binary has PTX for compute_%u and above, the emulated device is of compute capability "
                       "%d.%d",
                       lowest, limits->cc_major, limits->cc_minor);
    return em_fail(detail, CUDA_ERROR_NO_BINARY_FOR_GPU,
                   "the emulated device runs PTX, not machine code, and none of the fat binary's %u entries is PTX: "
                   "compile for a virtual architecture too (-gencode arch=compute_80,code=compute_80)",
                   seen);
}

/* ---- any image --------------------------------------------------------------------------------------------------- */

/* The first character that is neither space nor comment; `end` is a terminating zero. */
static const char *skip_comments(const char *at, const char *end)
{
    for (;;) {
        while (isspace((unsigned char)*at))
            at++;
        if (strncmp(at, "//", 2) == 0) {
            at += strcspn(at, "\n");
        } else if (strncmp(at, "/*", 2) == 0) {
            const char *close = strstr(at + 2, "*/");
            at = close != NULL ? close + 2 : end;
        } else {
            return at;
        }
    }
}

static int read_text(const char *image, size_t size, char **ptx, size_t *length, em_detail *detail)
{
    size_t text = size != 0 ? strnlen(image, size) : strlen(image);
    if (text == 0)
        return em_fail(detail, CUDA_ERROR_INVALID_IMAGE, "the image is empty");
    if (*skip_comments(image, image + text) != '.')
        return em_fail(detail, CUDA_ERROR_INVALID_IMAGE, "the image is neither PTX text nor a cubin nor a fat binary");
    return keep_text(image, text, ptx, length);
}

int em_image_ptx(const void *image, size_t size, const em_limits *limits, char **ptx, size_t *length, em_detail *detail)
{
    /* No magic number has a zero byte, so a text shorter than one is not read past its end. */
    uint32_t magic = 0;
    if (size != 0 ? size >= sizeof magic : strnlen(image, sizeof magic) == sizeof magic)
        memcpy(&magic, image, sizeof magic);
    if (magic == FATBIN_WRAPPER_MAGIC && (size == 0 || size >= sizeof(fatbin_wrapper))) {
        fatbin_wrapper wrapper;
        memcpy(&wrapper, image, sizeof wrapper);
        if (wrapper.data == NULL)
            return em_fail(detail, CUDA_ERROR_INVALID_IMAGE, "the fat binary wrapper is empty");
        return em_image_ptx(wrapper.data, 0, limits, ptx, length, detail);
    }
    if (magic == FATBIN_MAGIC && (size == 0 || size >= sizeof(fatbin_header)))
        return read_fatbin(image, size, limits, ptx, length, detail);
    if (magic != 0 && memcmp(image, ELFMAG, SELFMAG) == 0 && (size == 0 || size >= sizeof(Elf64_Ehdr)))
        return read_elf(image, size, ptx, length, detail);
    return read_text(image, size, ptx, length, detail);
}

int em_image_read(const char *path, void **image, size_t *size, em_detail *detail)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return em_fail(detail, CUDA_ERROR_FILE_NOT_FOUND, "%s: %m", path);
    char *bytes = NULL;
    size_t used = 0, room = 0;
    int status = CUDA_SUCCESS;
    for (;;) {
        if (room - used < 2) {
            room = room == 0 ? 1 << 16 : room * 2;
            char *grown = realloc(bytes, room);
            if (grown == NULL) {
                status = CUDA_ERROR_OUT_OF_MEMORY;
                break;
            }
            bytes = grown;
        }
        size_t count = fread(bytes + used, 1, room - used - 1, file);
        used += count;
        if (count == 0)
            break;
    }
    if (status == CUDA_SUCCESS && ferror(file))
        status = em_fail(detail, CUDA_ERROR_FILE_NOT_FOUND, "%s: %m", path);
    fclose(file);
    if (status != CUDA_SUCCESS) {
        free(bytes);
        return status;
    }
    bytes[used] = '\0';
    *image = bytes;
    *size = used;
    return CUDA_SUCCESS;
}
