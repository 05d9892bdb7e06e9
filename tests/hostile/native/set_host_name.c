// attack: set the name of the host (to the one it has)
// layers: seccomp privileges
// outcome: SIGSYS
// needs: root
// note: in a namespace the name that changes is the namespace's own; the call is counted all the same
#include "attack.h"
#include <sys/utsname.h>

static struct utsname host;

__attribute__((constructor)) static void learn(void) {
    uname(&host);
}

long attack(void) {
    return raw(SYS_sethostname, host.nodename, strlen(host.nodename));
}
