// attack: learn name and kernel of the host
// layers: seccomp
// outcome: EPERM
// note: a namespace keeps a copy of the name
#include "attack.h"
#include <sys/utsname.h>

long attack(void) {
    struct utsname host;
    return raw(SYS_uname, &host);
}
