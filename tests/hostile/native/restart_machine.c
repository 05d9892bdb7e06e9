// attack: restart the machine; the magic number is wrong, which is looked at after the permission
// layers: seccomp privileges
// outcome: SIGSYS
// needs: root
#include "attack.h"

long attack(void) {
    return reached(raw(SYS_reboot, 0, 0, 0, NULL), EINVAL);
}
