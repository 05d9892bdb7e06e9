// attack: compare kernel objects with the zygote's, which tells something of their order in memory
// layers: seccomp landlock privileges
// user layers: seccomp landlock hardening
// outcome: SIGSYS
// needs: feature kcmp
#include "attack.h"
#include <linux/kcmp.h>

long attack(void) {
    return raw(SYS_kcmp, raw(SYS_getpid), raw(SYS_getppid), KCMP_VM, 0, 0);
}
