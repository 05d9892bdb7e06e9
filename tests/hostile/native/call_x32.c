// attack: make a system call of the x32 kind, whose numbers are those of 64 bits and one more bit
// layers: seccomp
// outcome: SIGSYS
// needs: x86_64
// needs: feature x32 system calls
// note: a kernel without CONFIG_X86_X32_ABI has nothing to show here
#include "attack.h"

long attack(void) {
    return raw(0x40000000 | SYS_getpid);
}
