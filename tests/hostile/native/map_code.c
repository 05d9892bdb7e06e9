// attack: map memory that is executable and not writable
// layers: seccomp
// outcome: EPERM
// note: MDWE asks only that nothing becomes executable later
#include "attack.h"

long attack(void) {
    return raw(SYS_mmap, NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
