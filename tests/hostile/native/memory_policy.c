// attack: say from where memory comes
// layers: seccomp
// outcome: EPERM
// needs: feature NUMA
#include "attack.h"

long attack(void) {
    const int standard = 0;
    return raw(SYS_set_mempolicy, standard, NULL, 0);
}
