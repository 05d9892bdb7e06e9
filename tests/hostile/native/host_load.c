// attack: learn memory, load and age of the host
// layers: seccomp
// outcome: EPERM
#include "attack.h"
#include <sys/sysinfo.h>

long attack(void) {
    struct sysinfo host;
    return raw(SYS_sysinfo, &host);
}
