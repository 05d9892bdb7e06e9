// attack: go to a directory of the host; Landlock has no right for this
// layers: seccomp namespaces
// outcome: EPERM
#include "attack.h"

long attack(void) {
    return raw(SYS_chdir, "/etc");
}
