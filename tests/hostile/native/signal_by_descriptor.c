// attack: have the kernel signal the zygote when a descriptor is ready
// layers: seccomp
// outcome: EPERM
// note: Landlock (from 6 on) refuses the signal when it is due, not this request
#include "attack.h"

long attack(void) {
    int pair[2];
    TRY(raw(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
    TRY(raw(SYS_fcntl, pair[0], F_SETOWN, raw(SYS_getppid)));
    return raw(SYS_fcntl, pair[0], F_SETSIG, SIGURG);
}
