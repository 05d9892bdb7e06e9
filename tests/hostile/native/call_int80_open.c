// attack: open a file of the host with a system call of the 32-bit kind (number 5, which is fstat to 64 bits)
// layers: seccomp landlock namespaces
// outcome: SIGSYS
// needs: x86_64
// needs: feature 32-bit system calls
#include "attack.h"

long attack(void) {
    // The path must lie below 4 GiB.
    void *hint = (void *)0x10000000;
    long page = TRY(raw(SYS_mmap, hint, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (page >> 32) return -ENOMEM;
    strcpy((char *)page, "/etc/passwd");
    long result = -ENOSYS;
#ifdef __x86_64__
    const long open_of_32_bits = 5;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(open_of_32_bits), "b"(page), "c"(0L), "d"(0L)
                     : "memory", "r8", "r9", "r10", "r11");
#endif
    return (int)result;
}
