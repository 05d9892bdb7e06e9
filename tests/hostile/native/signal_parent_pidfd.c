// attack: signal the zygote through a descriptor
// layers: seccomp landlock
// outcome: EPERM
// needs: landlock 6
#include "attack.h"

long attack(void) {
    long parent = TRY(raw(SYS_pidfd_open, raw(SYS_getppid), 0));
    return raw(SYS_pidfd_send_signal, parent, 0, NULL, 0);
}
