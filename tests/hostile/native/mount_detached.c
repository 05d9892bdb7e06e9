// attack: make a file system with the newer calls, attach it nowhere and write to it
// layers: seccomp landlock privileges
// outcome: SIGSYS
// needs: root
// needs: kernel 5.2
#include "attack.h"
#include <linux/mount.h>

long attack(void) {
    long context = TRY(raw(SYS_fsopen, "tmpfs", 0));
    TRY(raw(SYS_fsconfig, context, FSCONFIG_CMD_CREATE));
    long mount = TRY(raw(SYS_fsmount, context, 0, 0));
    return raw(SYS_openat, mount, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}
