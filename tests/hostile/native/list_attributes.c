// attack: list the extended attributes of a file; Landlock has no right for this
// layers: seccomp namespaces
// outcome: EPERM
#include "attack.h"

long attack(void) {
    char names[256];
    return raw(SYS_listxattr, "/etc/passwd", names, sizeof names);
}
