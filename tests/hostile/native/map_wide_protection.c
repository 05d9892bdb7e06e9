// attack: map executable memory with high bits set in the protection
// layers: seccomp mdwe
// outcome: EPERM
// needs: kernel 6.3
#include "attack.h"

long attack(void) {
    long all = PROT_READ | PROT_WRITE | PROT_EXEC | (1L << 32);
    return raw(SYS_mmap, NULL, 4096, all, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
