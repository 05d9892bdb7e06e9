// attack: have equal pages merged, which tells by its timing what others have in theirs
// layers: seccomp
// outcome: EPERM
// needs: feature KSM
#include "attack.h"

long attack(void) {
    long page = TRY(map_private(4096));
    return raw(SYS_madvise, page, 4096, MADV_MERGEABLE);
}
