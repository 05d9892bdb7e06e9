// attack: map a stack that grows downwards, towards other memory
// layers: seccomp
// outcome: EPERM
#include "attack.h"

long attack(void) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN;
    return raw(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE, flags, -1, 0);
}
