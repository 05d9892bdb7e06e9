// attack: have the zygote's memory swapped out early
// layers: seccomp landlock privileges
// outcome: EPERM
// needs: kernel 5.10
// needs: root
// note: newer kernels let CAP_PERFMON pass whatever Landlock says, so all but the needed rights are given up
#include "attack.h"
#include <linux/capability.h>
#include <sys/uio.h>

static char page[8192];

long attack(void) {
    const int cold = 20;
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2] = {{0}, {0}};
    sets[0].effective = sets[0].permitted = 1 << CAP_SYS_NICE | 1 << CAP_SYS_PTRACE;
    TRY(raw(SYS_capset, &head, sets));
    struct iovec there = {(void *)(((uintptr_t)page + 4095) & ~4095UL), 4096};
    long parent = TRY(raw(SYS_pidfd_open, raw(SYS_getppid), 0));
    return raw(SYS_process_madvise, parent, &there, 1, cold, 0);
}
