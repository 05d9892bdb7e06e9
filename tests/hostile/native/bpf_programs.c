// attack: look for programs in the kernel
// layers: seccomp privileges
// outcome: SIGSYS
// needs: root
// needs: feature bpf
#include "attack.h"
#include <linux/bpf.h>

long attack(void) {
    union bpf_attr from_the_first;
    memset(&from_the_first, 0, sizeof from_the_first);
    return reached(raw(SYS_bpf, BPF_PROG_GET_NEXT_ID, &from_the_first, sizeof from_the_first), ENOENT);
}
