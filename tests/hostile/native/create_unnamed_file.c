// attack: make a file without a name
// layers: seccomp landlock namespaces
// outcome: EPERM
// needs: feature O_TMPFILE in the file system of /tmp
#include "attack.h"

long attack(void) {
    return raw(SYS_openat, AT_FDCWD, "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}
