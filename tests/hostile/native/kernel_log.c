// attack: ask the kernel's log what is unread
// layers: seccomp privileges
// outcome: EPERM
// needs: root
#include "attack.h"

long attack(void) {
    const int size_unread = 9;
    return raw(SYS_syslog, size_unread, NULL, 0);
}
