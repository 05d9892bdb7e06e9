// attack: make a pipe larger
// layers: seccomp
// outcome: EPERM
#include "attack.h"

long attack(void) {
    int ends[2];
    TRY(raw(SYS_pipe2, ends, O_CLOEXEC));
    return raw(SYS_fcntl, ends[0], F_SETPIPE_SZ, 1 << 20);
}
