// attack: install a filter that hands its verdicts to a descriptor
// layers: seccomp
// outcome: EPERM
// needs: kernel 5.0
#include "attack.h"
#include <linux/filter.h>
#include <linux/seccomp.h>

long attack(void) {
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {1, &allow};
    return raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}
