// attack: start a program with execveat
// layers: seccomp landlock namespaces
// outcome: EPERM
#include "attack.h"

static long start(void) {
    char *arguments[] = {"true", NULL}, *none[] = {NULL};
    return raw(SYS_execveat, AT_FDCWD, "/bin/true", arguments, none, 0);
}

long attack(void) {
    return in_child(start);
}
