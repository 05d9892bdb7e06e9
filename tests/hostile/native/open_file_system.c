// attack: begin to make a file system
// layers: seccomp privileges
// outcome: SIGSYS
// needs: root
#include "attack.h"

long attack(void) {
    return raw(SYS_fsopen, "tmpfs", 0);
}
