// attack: start a program
// layers: seccomp landlock namespaces
// outcome: EPERM
#include "attack.h"

static long start(void) {
    char *arguments[] = {"true", NULL}, *none[] = {NULL};
    return raw(SYS_execve, "/bin/true", arguments, none);
}

long attack(void) {
    return in_child(start);
}
