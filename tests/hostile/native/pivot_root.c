// attack: exchange the root; with these arguments it is refused as busy once it is permitted
// layers: seccomp landlock privileges
// outcome: SIGSYS
// needs: root
#include "attack.h"

long attack(void) {
    long result = raw(SYS_pivot_root, "/", "/");
    return reached(reached(result, EBUSY), EINVAL);
}
