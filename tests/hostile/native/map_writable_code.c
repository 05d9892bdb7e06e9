// attack: map memory that is writable and executable
// layers: seccomp mdwe
// outcome: EPERM
// needs: kernel 6.3
#include "attack.h"

long attack(void) {
    int all = PROT_READ | PROT_WRITE | PROT_EXEC;
    return raw(SYS_mmap, NULL, 4096, all, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
