// attack: install a filter of its own over prctl
// layers: seccomp
// outcome: EPERM
#include "attack.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

long attack(void) {
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {1, &allow};
    return raw(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
