// attack: change the owner of a directory (to what it is); Landlock has no right for this
// layers: seccomp namespaces privileges
// outcome: EPERM
// needs: root
#include "attack.h"

long attack(void) {
    struct stat now;
    TRY(raw(SYS_newfstatat, AT_FDCWD, "/tmp", &now, 0));
    return raw(SYS_fchownat, AT_FDCWD, "/tmp", now.st_uid, now.st_gid, 0);
}
