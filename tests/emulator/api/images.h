/* Containers made by hand from their formats: a cubin with a PTX section, and fat binaries. */
#ifndef IMAGES_H
#define IMAGES_H

#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { IMAGE_BYTES = 64 << 10 };

/* An ELF file with one section of the given type and content; returns its size. */
static inline size_t make_elf(char *to, uint32_t type, const void *content, size_t size)
{
    Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                         .e_type = ET_EXEC,
                         .e_machine = 190,
                         .e_version = 1,
                         .e_shoff = sizeof header,
                         .e_ehsize = sizeof header,
                         .e_shentsize = sizeof(Elf64_Shdr),
                         .e_shnum = 2};
    Elf64_Shdr sections[2] = {{.sh_type = SHT_NULL},
                              {.sh_type = type, .sh_offset = sizeof header + sizeof sections, .sh_size = size}};
    memcpy(to, &header, sizeof header);
    memcpy(to + sizeof header, sections, sizeof sections);
    memcpy(to + sizeof header + sizeof sections, content, size);
    return sizeof header + sizeof sections + size;
}

/* A fat binary of one entry, as nvcc writes them: a 16-byte header, and a 64-byte header of the entry. */
static inline size_t make_fatbin(char *to, uint16_t kind, uint32_t target, uint64_t flags, const void *payload,
                                 size_t size, uint64_t uncompressed)
{
    uint64_t padded = (size + 7) & ~(uint64_t)7, total = 64 + padded;
    memset(to, 0, 16 + total);
    memcpy(to, &(uint32_t){0xba55ed50}, 4);
    memcpy(to + 4, &(uint16_t){1}, 2);
    memcpy(to + 6, &(uint16_t){16}, 2);
    memcpy(to + 8, &total, 8);
    char *entry = to + 16;
    memcpy(entry, &kind, 2);
    memcpy(entry + 2, &(uint16_t){0x101}, 2);
    memcpy(entry + 4, &(uint32_t){64}, 4);
    memcpy(entry + 8, &padded, 8);
    memcpy(entry + 16, &(uint32_t){uncompressed != 0 ? (uint32_t)size : 0}, 4);
    memcpy(entry + 28, &target, 4);
    memcpy(entry + 40, &flags, 8);
    memcpy(entry + 56, &uncompressed, 8);
    memcpy(entry + 64, payload, size);
    return 16 + total;
}

/* LZ4 and zstd streams that only store, which every decoder must read. */
static inline size_t store_lz4(char *to, const char *from, size_t size)
{
    size_t at = 0, left = size - 15;
    to[at++] = (char)0xf0;
    for (; left >= 255; left -= 255)
        to[at++] = (char)0xff;
    to[at++] = (char)left;
    memcpy(to + at, from, size);
    return at + size;
}

static inline size_t store_zstd(char *to, const char *from, size_t size)
{
    static const unsigned char magic[] = {0x28, 0xb5, 0x2f, 0xfd, 0xa0}; /* one segment, 4 bytes of size */
    memcpy(to, magic, 5);
    memcpy(to + 5, &(uint32_t){(uint32_t)size}, 4);
    uint32_t block = (uint32_t)size << 3 | 1; /* the last block, raw */
    memcpy(to + 9, &block, 3);
    memcpy(to + 12, from, size);
    return size + 12;
}

#endif
