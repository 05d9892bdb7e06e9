// attack: read the local descriptor table of this process
// layers: seccomp
// outcome: SIGSYS
// needs: x86_64
// needs: feature modify_ldt
#include "attack.h"

long attack(void) {
    char table[64];
    return raw(SYS_modify_ldt, 0, table, sizeof table);
}
