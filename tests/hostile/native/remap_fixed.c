// attack: move memory to a place of choice, over what is there
// layers: seccomp
// outcome: EPERM
#include "attack.h"

long attack(void) {
    const int maymove = 1, fixed = 2;
    long pages = TRY(map_private(8192));
    return raw(SYS_mremap, pages, 4096, 4096, maymove | fixed, pages + 4096);
}
