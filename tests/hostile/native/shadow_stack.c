// attack: map a shadow stack
// layers: seccomp
// outcome: EPERM
// needs: x86_64
// needs: feature user shadow stacks
#include "attack.h"

long attack(void) {
    return raw(SYS_map_shadow_stack, 0, 4096, 0);
}
