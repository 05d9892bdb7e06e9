// attack: make written memory executable with pkey_mprotect
// layers: seccomp mdwe
// outcome: EPERM
// needs: kernel 6.3
#include "attack.h"

long attack(void) {
    long page = TRY(map_private(4096));
    *(volatile char *)page = 1;
    return raw(SYS_pkey_mprotect, page, 4096, PROT_READ | PROT_EXEC, -1);
}
