// attack: make a ring, which does system calls that no filter sees
// layers: seccomp limits+privileges
// user layers: seccomp limits
// outcome: SIGSYS
// needs: feature io_uring
// needs: limits 6.14
// note: the memory of a ring counts as locked, but not for root, and not at all before Linux 6.14
#include "attack.h"
#include <linux/io_uring.h>

long attack(void) {
    struct io_uring_params how = {0};
    return raw(SYS_io_uring_setup, 1, &how);
}
