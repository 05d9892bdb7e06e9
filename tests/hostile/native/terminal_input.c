// attack: type into a terminal
// layers: seccomp landlock namespaces
// outcome: EPERM
// needs: feature terminals in /dev/ptmx
// needs: sysctl dev.tty.legacy_tiocsti=1
// note: the worker's own streams are pipes, so it has to open a terminal first
#include "attack.h"
#include <sys/ioctl.h>

long attack(void) {
    int unlock = 0;
    long keeper = TRY(raw(SYS_openat, AT_FDCWD, "/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
    TRY(raw(SYS_ioctl, keeper, TIOCSPTLCK, &unlock));
    long terminal = TRY(raw(SYS_ioctl, keeper, TIOCGPTPEER, O_RDWR | O_NOCTTY));
    raw(SYS_setsid);
    signal(SIGHUP, SIG_IGN);
    TRY(raw(SYS_ioctl, terminal, TIOCSCTTY, 0));
    return raw(SYS_ioctl, terminal, TIOCSTI, "x");
}
