// attack: make own code writable
// layers: seccomp mdwe
// outcome: EPERM
// needs: kernel 6.3
#include "attack.h"

long attack(void) {
    uintptr_t page = (uintptr_t)attack & ~4095UL;
    return raw(SYS_mprotect, page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
}
