// attack: make semaphores, which outlive the process
// layers: seccomp
// outcome: EPERM
// needs: feature System V IPC
#include "attack.h"
#include <sys/ipc.h>

long attack(void) {
    long set = TRY(raw(SYS_semget, IPC_PRIVATE, 1, IPC_CREAT | 0600));
    return raw(SYS_semctl, set, 0, IPC_RMID, 0);
}
