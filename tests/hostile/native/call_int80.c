// attack: make a system call of the 32-bit kind: a filter that knows 64-bit numbers takes it for another
// layers: seccomp
// outcome: SIGSYS
// needs: x86_64
// needs: feature 32-bit system calls
#include "attack.h"

long attack(void) {
    long result = -ENOSYS;
#ifdef __x86_64__
    const long getpid_of_32_bits = 20;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(getpid_of_32_bits)
                     : "memory", "r8", "r9", "r10", "r11");
#endif
    return (int)result;
}
