// attack: put own pages into a pipe (the way of CVE-2022-0847)
// layers: seccomp
// outcome: EPERM
#include "attack.h"
#include <sys/uio.h>

long attack(void) {
    int ends[2];
    TRY(raw(SYS_pipe2, ends, O_CLOEXEC));
    struct iovec part = {"x", 1};
    return raw(SYS_vmsplice, ends[1], &part, 1, 0);
}
