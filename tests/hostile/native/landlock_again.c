// attack: make a Landlock ruleset of its own
// layers: seccomp
// outcome: EPERM
#include "attack.h"

long attack(void) {
    uint64_t handled = 1; // LANDLOCK_ACCESS_FS_EXECUTE
    return raw(444, &handled, sizeof handled, 0); // landlock_create_ruleset
}
