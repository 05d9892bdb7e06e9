// attack: let a mapping grow to 1 GiB
// layers: limits
// outcome: limit
#include "attack.h"

long attack(void) {
    const int maymove = 1;
    long page = TRY(map_private(4096));
    return raw(SYS_mremap, page, 4096, 1L << 30, maymove);
}
