// attack: signal the host's first process
// layers: seccomp landlock privileges
// outcome: EPERM
// needs: root
// needs: landlock 6
#include "attack.h"

long attack(void) {
    return raw(SYS_kill, 1, 0);
}
