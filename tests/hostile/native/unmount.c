// attack: take a mount away, in a mount namespace of its own
// layers: seccomp landlock namespaces privileges
// outcome: SIGSYS
// needs: root
// note: an empty root has nothing to take away
#include "attack.h"

long attack(void) {
    TRY(raw(SYS_unshare, CLONE_NEWNS));
    TRY(raw(SYS_mount, NULL, "/", NULL, (1 << 14) | (1 << 18), NULL)); // MS_REC | MS_PRIVATE
    return raw(SYS_umount2, "/proc", 2);                              // MNT_DETACH
}
