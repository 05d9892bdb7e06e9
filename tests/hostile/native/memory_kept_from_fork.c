// attack: give advice on memory that is not on the list
// layers: seccomp
// outcome: EPERM
#include "attack.h"

long attack(void) {
    long page = TRY(map_private(4096));
    return raw(SYS_madvise, page, 4096, MADV_DONTFORK);
}
