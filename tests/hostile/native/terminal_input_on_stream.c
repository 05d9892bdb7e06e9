// attack: ask standard input for something that only terminals, files and sockets know
// layers: seccomp
// outcome: EPERM
#include "attack.h"
#include <sys/ioctl.h>

long attack(void) {
    int count;
    return raw(SYS_ioctl, 0, FIONREAD, &count);
}
