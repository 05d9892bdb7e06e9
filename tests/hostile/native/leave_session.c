// attack: leave the zygote's session and process group, and so what is sent to them
// layers: seccomp
// outcome: EPERM
#include "attack.h"

long attack(void) {
    return raw(SYS_setsid);
}
