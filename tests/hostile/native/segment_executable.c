// attack: attach shared memory that is writable and executable
// layers: seccomp mdwe
// outcome: EPERM
// needs: kernel 6.3
#include "attack.h"
#include <sys/shm.h>

long attack(void) {
    long segment = TRY(raw(SYS_shmget, IPC_PRIVATE, 4096, IPC_CREAT | 0700));
    long attached = raw(SYS_shmat, segment, NULL, SHM_EXEC);
    raw(SYS_shmctl, segment, IPC_RMID, NULL);
    return attached;
}
