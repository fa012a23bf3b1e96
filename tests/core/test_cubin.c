/* PTX inside a cubin: nothing that was there moves, and bytes that are damaged are refused without reading past them.
 */
#include "check.h"
#include "internal.h"

#include <elf.h>

static const char ptx[] = ".version 9.0\n.target sm_80\n.address_size 64\n.entry k() { ret; }\n";

/* The smallest file of the shape that ptxas makes: header, names, text, program header, section headers. */
typedef struct small_elf {
    Elf64_Ehdr header;
    char names[24];
    unsigned char text[64];
    Elf64_Phdr program;
    Elf64_Shdr sections[3];
} small_elf;

static small_elf make_elf(void)
{
    small_elf made = {
        .header = {.e_type = ET_EXEC,
                   .e_machine = EM_CUDA,
                   .e_version = EV_CURRENT,
                   .e_phoff = offsetof(small_elf, program),
                   .e_shoff = offsetof(small_elf, sections),
                   .e_flags = 0x500050,
                   .e_ehsize = sizeof(Elf64_Ehdr),
                   .e_phentsize = sizeof(Elf64_Phdr),
                   .e_phnum = 1,
                   .e_shentsize = sizeof(Elf64_Shdr),
                   .e_shnum = 3,
                   .e_shstrndx = 1},
        .names = "\0.shstrtab\0.text.k",
        .program =
            {.p_type = PT_LOAD, .p_offset = offsetof(small_elf, text), .p_filesz = 64, .p_memsz = 64, .p_align = 8},
        .sections = {{0},
                     {.sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = offsetof(small_elf, names), .sh_size = 19},
                     {.sh_name = 11, .sh_type = SHT_PROGBITS, .sh_offset = offsetof(small_elf, text), .sh_size = 64}},
    };
    memcpy(made.header.e_ident, ELFMAG, SELFMAG);
    made.header.e_ident[EI_CLASS] = ELFCLASS64;
    made.header.e_ident[EI_DATA] = ELFDATA2LSB;
    made.header.e_ident[EI_VERSION] = EV_CURRENT;
    memset(made.text, 0xab, sizeof made.text);
    return made;
}

static void check_ptx(const void *code, size_t size)
{
    const char *found;
    size_t found_size;
    CHECK(cc_cubin_ptx(code, size, &found, &found_size));
    CHECK_INT(found_size, strlen(ptx));
    CHECK(memcmp(found, ptx, strlen(ptx)) == 0);
    CHECK_INT(found[found_size], 0);
}

static unsigned char *join(const void *code, size_t size, size_t *joined_size)
{
    cc_error error;
    void *joined;
    MUST(cc__cubin_add_ptx(code, size, ptx, strlen(ptx), &joined, joined_size, &error));
    return joined;
}

static void test_round_trip(void)
{
    small_elf elf = make_elf();
    size_t size;
    unsigned char *joined = join(&elf, sizeof elf, &size);
    CHECK(joined != NULL);
    check_ptx(joined, size);
    CHECK_INT(cc__code_size(joined, size), size);

    /* all but the two fields of the header that say where the sections are */
    Elf64_Ehdr header;
    memcpy(&header, joined, sizeof header);
    CHECK_INT(header.e_shnum, 4);
    CHECK_INT(header.e_shoff % 8, 0);
    header.e_shnum = 3;
    header.e_shoff = elf.header.e_shoff;
    CHECK(memcmp(&header, &elf.header, sizeof header) == 0);
    CHECK(memcmp(joined + sizeof header, (char *)&elf + sizeof header, sizeof elf - sizeof header) == 0);
    free(joined);
}

static void test_sections_after_joining(void)
{
    small_elf elf = make_elf();
    size_t size;
    unsigned char *joined = join(&elf, sizeof elf, &size);
    Elf64_Ehdr header;
    Elf64_Shdr sections[4];
    memcpy(&header, joined, sizeof header);
    CHECK_INT(header.e_shoff + sizeof sections, size);
    memcpy(sections, joined + header.e_shoff, sizeof sections);
    CHECK(memcmp(&sections[0], &elf.sections[0], sizeof sections[0]) == 0);
    CHECK(memcmp(&sections[2], &elf.sections[2], sizeof sections[0]) == 0);
    const char *names = (const char *)joined + sections[header.e_shstrndx].sh_offset;
    CHECK(strcmp(names + sections[1].sh_name, ".shstrtab") == 0);
    CHECK(strcmp(names + sections[2].sh_name, ".text.k") == 0);
    CHECK(strcmp(names + sections[3].sh_name, ".cuda_core.ptx") == 0);
    CHECK_INT(sections[3].sh_type, 0x8000cc01u);
    free(joined);
}

/* Once more on what was made: the first section is found, and it is still a good file. */
static void test_twice(void)
{
    small_elf elf = make_elf();
    size_t size, size_again;
    unsigned char *joined = join(&elf, sizeof elf, &size), *again = join(joined, size, &size_again);
    CHECK(again != NULL);
    check_ptx(again, size_again);
    free(joined);
    free(again);
}

static void test_not_a_cubin(void)
{
    small_elf elf = make_elf();
    const char *found;
    size_t size;
    CHECK(!cc_cubin_ptx(&elf, sizeof elf, &found, &size)); /* a foreign one */
    CHECK(!cc_cubin_ptx(ptx, strlen(ptx), &found, &size));
    CHECK(!cc_cubin_ptx("", 0, &found, &size));
    CHECK(join(ptx, strlen(ptx), &size) == NULL);
    elf.header.e_ident[EI_CLASS] = ELFCLASS32;
    CHECK(join(&elf, sizeof elf, &size) == NULL);
    elf = make_elf();
    elf.header.e_shstrndx = 3;
    CHECK(join(&elf, sizeof elf, &size) == NULL);
    elf = make_elf();
    elf.sections[1].sh_size = (Elf64_Xword)-8;
    CHECK(join(&elf, sizeof elf, &size) == NULL);
}

/* On memory of exactly that size, so that AddressSanitizer sees every step past the end. */
static void read_all(const unsigned char *bytes, size_t size)
{
    unsigned char *exact = malloc(size ? size : 1);
    const char *found;
    size_t found_size;
    memcpy(exact, bytes, size);
    if (cc_cubin_ptx(exact, size, &found, &found_size)) {
        CHECK(found >= (char *)exact && found_size <= size && found + found_size <= (char *)exact + size);
        for (size_t i = 0; i < found_size; i++)
            CHECK(found[i] == (char)exact[(size_t)(found - (char *)exact) + i]);
    }
    CHECK(cc__code_size(exact, size) <= size);
    free(join(exact, size, &found_size));
    free(exact);
}

static void test_damaged(void)
{
    small_elf elf = make_elf();
    size_t size;
    unsigned char *joined = join(&elf, sizeof elf, &size);
    for (size_t cut = 0; cut < size; cut++) {
        read_all(joined, cut);
        if (cut >= 4)
            CHECK_INT(cc__code_size(joined, cut), 0); /* the sections are last: every cut shows */
    }
    Elf64_Ehdr header;
    memcpy(&header, joined, sizeof header);
    for (size_t at = 0; at < size; at++) {
        if (at == sizeof header)
            at = header.e_shoff; /* the headers are what steers */
        for (int bit = 0; bit < 8; bit++) {
            joined[at] ^= (unsigned char)(1 << bit);
            read_all(joined, size);
            joined[at] ^= (unsigned char)(1 << bit);
        }
    }
    free(joined);
}

static void test_fatbin_size(void)
{
    unsigned char fatbin[64] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 32};
    CHECK_INT(cc__code_size(fatbin, sizeof fatbin), 48);
    CHECK_INT(cc__code_size(fatbin, 48), 48);
    CHECK_INT(cc__code_size(fatbin, 47), 0);
    memset(fatbin + 8, 0xff, 8);
    CHECK_INT(cc__code_size(fatbin, sizeof fatbin), 0);
    CHECK_INT(cc__code_size(ptx, strlen(ptx)), strlen(ptx));
}

static const check_test tests[] = {TEST(test_round_trip), TEST(test_sections_after_joining),
                                   TEST(test_twice),      TEST(test_not_a_cubin),
                                   TEST(test_damaged),    TEST(test_fatbin_size)};
CHECK_MAIN(tests)
