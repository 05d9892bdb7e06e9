// attack: make a message queue with a number
// layers: seccomp
// outcome: EPERM
// needs: feature System V IPC
#include "attack.h"
#include <sys/ipc.h>

long attack(void) {
    long queue = TRY(raw(SYS_msgget, IPC_PRIVATE, IPC_CREAT | 0600));
    return raw(SYS_msgctl, queue, IPC_RMID, NULL);
}
