/* A cubin that carries the PTX it was made from, in one more ELF section.
 *
 * Everything that is in the file keeps its place: PTX, a copy of the section names with one more, and a new table of
 * section headers are added behind it. The GPU's driver and NVIDIA's tools pass over a section type they do not know.
 */
#include "internal.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

static const char SECTION_NAME[] = ".cuda_core.ptx";

/* ---- reading ---------------------------------------------------------------------------------------------------- */

typedef struct cubin {
    const unsigned char *bytes;
    size_t size;
    Elf64_Ehdr header;
} cubin;

static bool fits(uint64_t offset, uint64_t length, uint64_t size)
{
    return offset <= size && length <= size - offset;
}

/* True when the bytes are an ELF64 whose table of sections lies within them. */
static bool read_header(const void *code, size_t size, cubin *image)
{
    image->bytes = code;
    image->size = size;
    if (size < sizeof image->header)
        return false;
    memcpy(&image->header, code, sizeof image->header);
    const Elf64_Ehdr *header = &image->header;
    return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == ELFCLASS64 &&
           header->e_ident[EI_DATA] == ELFDATA2LSB && header->e_shentsize == sizeof(Elf64_Shdr) &&
           fits(header->e_shoff, (uint64_t)header->e_shnum * sizeof(Elf64_Shdr), size);
}

static Elf64_Shdr section_at(const cubin *image, size_t index)
{
    Elf64_Shdr section; /* a copy: bytes from anywhere need not be aligned */
    memcpy(&section, image->bytes + image->header.e_shoff + index * sizeof section, sizeof section);
    return section;
}

bool cc_cubin_ptx(const void *code, size_t size, const char **ptx, size_t *ptx_size)
{
    cubin image;
    if (!read_header(code, size, &image))
        return false;
    for (size_t i = 0; i < image.header.e_shnum; i++) {
        Elf64_Shdr section = section_at(&image, i);
        if (section.sh_type != (Elf64_Word)CC__SECTION_PTX || !fits(section.sh_offset, section.sh_size, size))
            continue;
        *ptx = (const char *)code + section.sh_offset;
        *ptx_size = section.sh_size;
        return true;
    }
    return false;
}

static size_t elf_size(const cubin *image)
{
    const Elf64_Ehdr *header = &image->header;
    uint64_t programs = (uint64_t)header->e_phnum * sizeof(Elf64_Phdr);
    if (header->e_phnum && (header->e_phentsize != sizeof(Elf64_Phdr) || !fits(header->e_phoff, programs, image->size)))
        return 0;
    for (size_t i = 0; i < header->e_shnum; i++) {
        Elf64_Shdr section = section_at(image, i);
        if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL &&
            !fits(section.sh_offset, section.sh_size, image->size))
            return 0;
    }
    return image->size;
}

typedef struct fatbin_header {
    uint32_t magic;
    uint16_t version, header_size;
    uint64_t body_size;
} fatbin_header;

enum { FATBIN_MAGIC = (int)0xba55ed50u };

size_t cc__code_size(const void *code, size_t size)
{
    cubin image;
    fatbin_header fatbin;
    if (size >= SELFMAG && memcmp(code, ELFMAG, SELFMAG) == 0)
        return read_header(code, size, &image) ? elf_size(&image) : 0;
    if (size < sizeof fatbin)
        return size;
    memcpy(&fatbin, code, sizeof fatbin);
    if (fatbin.magic != (uint32_t)FATBIN_MAGIC)
        return size;
    return fits(fatbin.header_size, fatbin.body_size, size) ? (size_t)(fatbin.header_size + fatbin.body_size) : 0;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

typedef struct layout {
    size_t ptx, names, sections, end; /* offsets of what is added */
    size_t old_names_size, names_size;
} layout;

static size_t align_up(size_t value, size_t alignment)
{
    return (value + alignment - 1) / alignment * alignment;
}

static layout plan(const cubin *image, const Elf64_Shdr *names, size_t ptx_size)
{
    layout plan;
    plan.old_names_size = (size_t)names->sh_size;
    plan.names_size = plan.old_names_size + sizeof SECTION_NAME;
    plan.ptx = align_up(image->size, 16);
    plan.names = plan.ptx + ptx_size + 1; /* + 1: a NUL behind the text, for whoever looks at it in memory */
    plan.sections = align_up(plan.names + plan.names_size, 8);
    plan.end = plan.sections + ((size_t)image->header.e_shnum + 1) * sizeof(Elf64_Shdr);
    return plan;
}

static void write_sections(const cubin *image, const layout *plan, size_t ptx_size, unsigned char *out)
{
    size_t count = image->header.e_shnum, names_index = image->header.e_shstrndx;
    Elf64_Shdr names = section_at(image, names_index);
    Elf64_Shdr added = {
        .sh_name = (Elf64_Word)plan->old_names_size,
        .sh_type = (Elf64_Word)CC__SECTION_PTX,
        .sh_offset = plan->ptx,
        .sh_size = ptx_size,
        .sh_addralign = 16,
    };
    unsigned char *table = out + plan->sections;
    memcpy(table, image->bytes + image->header.e_shoff, count * sizeof(Elf64_Shdr));
    names.sh_offset = plan->names;
    names.sh_size = plan->names_size;
    memcpy(table + names_index * sizeof names, &names, sizeof names);
    memcpy(table + count * sizeof added, &added, sizeof added);
}

int cc__cubin_add_ptx(const void *code, size_t size, const char *ptx, size_t ptx_size, void **joined,
                      size_t *joined_size, cc_error *error)
{
    cubin image;
    *joined = NULL;
    if (!read_header(code, size, &image) || image.header.e_shnum == 0 || image.header.e_shnum >= SHN_LORESERVE - 1 ||
        image.header.e_shstrndx == 0 || image.header.e_shstrndx >= image.header.e_shnum)
        return 0;
    Elf64_Shdr names = section_at(&image, image.header.e_shstrndx);
    if (names.sh_type != SHT_STRTAB || !fits(names.sh_offset, names.sh_size, size) || names.sh_size > UINT32_MAX)
        return 0;

    layout place = plan(&image, &names, ptx_size);
    unsigned char *out = calloc(1, place.end);
    if (!out)
        return cc__fail_memory(error);
    memcpy(out, code, size);
    memcpy(out + place.ptx, ptx, ptx_size);
    memcpy(out + place.names, image.bytes + names.sh_offset, place.old_names_size);
    memcpy(out + place.names + place.old_names_size, SECTION_NAME, sizeof SECTION_NAME);
    write_sections(&image, &place, ptx_size, out);

    Elf64_Ehdr header = image.header;
    header.e_shoff = place.sections;
    header.e_shnum = (Elf64_Half)(header.e_shnum + 1);
    memcpy(out, &header, sizeof header);
    *joined = out;
    *joined_size = place.end;
    return 0;
}
