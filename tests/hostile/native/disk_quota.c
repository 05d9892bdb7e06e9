// attack: speak to the disk quotas of the host
// layers: seccomp
// outcome: SIGSYS
// needs: feature quota
#include "attack.h"
#include <sys/quota.h>

long attack(void) {
    return raw(SYS_quotactl, QCMD(Q_SYNC, USRQUOTA), NULL, 0, NULL);
}
