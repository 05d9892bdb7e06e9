// attack: be told what happens in a whole file system
// layers: seccomp namespaces privileges
// outcome: EPERM
// needs: root
#include "attack.h"
#include <sys/fanotify.h>

long attack(void) {
    long watch = TRY(raw(SYS_fanotify_init, FAN_CLASS_NOTIF | FAN_CLOEXEC, O_RDONLY));
    return raw(SYS_fanotify_mark, watch, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_OPEN, AT_FDCWD, "/etc");
}
