// attack: map memory that a second mapping could share
// layers: seccomp
// outcome: EPERM
#include "attack.h"

long attack(void) {
    return raw(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}
