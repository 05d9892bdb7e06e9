// attack: start the own program anew, which would be without what the zygote set up
// layers: seccomp landlock namespaces
// outcome: EPERM
// note: an argument that is too long ends the attempt after the permission and before the start
#include "attack.h"

static char too_long[256 * 1024];

long attack(void) {
    memset(too_long, 'x', sizeof too_long - 1);
    char *arguments[] = {too_long, NULL}, *none[] = {NULL};
    return reached(raw(SYS_execve, "/proc/self/exe", arguments, none), E2BIG);
}
