// attack: join the network of another process (of the zygote, which is its own)
// layers: seccomp landlock privileges
// outcome: EPERM
// needs: root
#include "attack.h"

long attack(void) {
    long parent = TRY(raw(SYS_pidfd_open, raw(SYS_getppid), 0));
    return raw(SYS_setns, parent, CLONE_NEWNET);
}
