// attack: ask to be ended last when memory runs out
// layers: seccomp landlock namespaces privileges
// user layers: seccomp landlock namespaces hardening
// outcome: EPERM
// note: privileges hold it because a process that has changed its user does not own its entries in /proc
#include "attack.h"

long attack(void) {
    long file = TRY(raw(SYS_openat, AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
    return raw(SYS_write, file, "0", 1);
}
