// attack: leave a mapping behind where memory was moved from
// layers: seccomp
// outcome: EPERM
// needs: kernel 5.7
#include "attack.h"

long attack(void) {
    const int maymove = 1, dontunmap = 4;
    long page = TRY(map_private(4096));
    return raw(SYS_mremap, page, 4096, 4096, maymove | dontunmap, 0);
}
