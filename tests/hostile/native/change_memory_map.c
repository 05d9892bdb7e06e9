// attack: change what the kernel holds of this process's memory
// layers: seccomp
// outcome: EPERM
// needs: feature checkpoint and restore
#include "attack.h"
#include <linux/prctl.h>

long attack(void) {
    unsigned size;
    return raw(SYS_prctl, PR_SET_MM, PR_SET_MM_MAP_SIZE, &size);
}
