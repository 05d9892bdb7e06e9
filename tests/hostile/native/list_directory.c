// attack: list a directory of the host
// layers: seccomp landlock namespaces
// outcome: EPERM
#include "attack.h"

long attack(void) {
    char entries[1024];
    long directory = TRY(raw(SYS_openat, AT_FDCWD, "/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return raw(SYS_getdents64, directory, entries, sizeof entries);
}
