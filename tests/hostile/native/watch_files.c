// attack: be told what happens in a directory of the host; Landlock has no right for this
// layers: seccomp namespaces
// outcome: EPERM
#include "attack.h"
#include <sys/inotify.h>

long attack(void) {
    long watch = TRY(raw(SYS_inotify_init1, IN_CLOEXEC));
    return raw(SYS_inotify_add_watch, watch, "/etc", IN_ALL_EVENTS);
}
