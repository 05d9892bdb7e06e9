// attack: write a program into memory and start it from there
// layers: seccomp limits
// outcome: EPERM
// note: Landlock lets it pass: the file is on no mounted file system; the limit on file sizes keeps it empty
#include "attack.h"
#include <elf.h>

// The smallest program: it ends with 0.
#if defined __x86_64__
#define MACHINE EM_X86_64
static const unsigned char code[] = {0xb8, 60, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05};
#else
#define MACHINE EM_AARCH64
static const unsigned char code[] = {0x00, 0, 0x80, 0xd2, 0xa8, 0x0b, 0x80, 0xd2, 0x01, 0, 0, 0xd4};
#endif

static long program;

static long start(void) {
    char *arguments[] = {"program", NULL}, *none[] = {NULL};
    return raw(SYS_execveat, program, "", arguments, none, AT_EMPTY_PATH);
}

long attack(void) {
    const unsigned long base = 0x400000, begin = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
    struct {
        Elf64_Ehdr head;
        Elf64_Phdr segment;
        unsigned char code[sizeof code];
    } image = {
        .head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                 .e_type = ET_EXEC, .e_machine = MACHINE, .e_version = EV_CURRENT, .e_entry = base + begin,
                 .e_phoff = sizeof(Elf64_Ehdr), .e_ehsize = sizeof(Elf64_Ehdr),
                 .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 1},
        .segment = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = base, .p_paddr = base,
                    .p_filesz = begin + sizeof code, .p_memsz = begin + sizeof code, .p_align = 0x10000},
    };
    memcpy(image.code, code, sizeof code);
    program = TRY(raw(SYS_memfd_create, "program", MFD_CLOEXEC));
    TRY(raw(SYS_write, program, &image, begin + sizeof code));
    return in_child(start);
}
