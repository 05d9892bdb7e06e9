// attack: load code into the kernel; what is given is no module
// layers: seccomp privileges
// outcome: SIGSYS
// needs: root
// needs: feature modules
#include "attack.h"

long attack(void) {
    char nothing[64] = {0};
    return reached(raw(SYS_init_module, nothing, sizeof nothing, ""), ENOEXEC);
}
