// attack: set a limit of the zygote (to what it is)
// layers: seccomp
// outcome: EPERM
#include "attack.h"

long attack(void) {
    struct rlimit limit;
    long parent = raw(SYS_getppid);
    TRY(raw(SYS_prlimit64, parent, RLIMIT_STACK, NULL, &limit));
    return raw(SYS_prlimit64, parent, RLIMIT_STACK, &limit, NULL);
}
