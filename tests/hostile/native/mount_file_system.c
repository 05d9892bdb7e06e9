// attack: mount a file system, in a mount namespace of its own
// layers: seccomp landlock privileges
// outcome: SIGSYS
// needs: root
#include "attack.h"

long attack(void) {
    TRY(raw(SYS_unshare, CLONE_NEWNS));
    TRY(raw(SYS_mount, NULL, "/", NULL, (1 << 14) | (1 << 18), NULL)); // MS_REC | MS_PRIVATE
    return raw(SYS_mount, "none", "/", "tmpfs", 0, NULL);
}
