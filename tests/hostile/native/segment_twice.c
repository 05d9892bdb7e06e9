// attack: attach one segment of shared memory twice, to write here what runs there
// layers: seccomp
// outcome: EPERM
// note: MDWE looks at each mapping alone
#include "attack.h"
#include <sys/shm.h>

long attack(void) {
    long segment = TRY(raw(SYS_shmget, IPC_PRIVATE, 4096, IPC_CREAT | 0700));
    long writable = raw(SYS_shmat, segment, NULL, 0);
    long executable = raw(SYS_shmat, segment, NULL, SHM_RDONLY | SHM_EXEC);
    raw(SYS_shmctl, segment, IPC_RMID, NULL);
    return writable < 0 ? writable : executable;
}
