// attack: signal the zygote with a value
// layers: seccomp landlock
// outcome: EPERM
// needs: landlock 6
#include "attack.h"

long attack(void) {
    siginfo_t how = {.si_code = SI_QUEUE};
    return raw(SYS_rt_sigqueueinfo, raw(SYS_getppid), 0, &how);
}
