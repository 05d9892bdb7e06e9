// attack: look for a key; there is none of that name
// layers: seccomp
// outcome: SIGSYS
// needs: feature keyrings
#include "attack.h"
#include <linux/keyctl.h>

long attack(void) {
    long result = raw(SYS_request_key, "user", "lockhouse-attack", NULL, KEY_SPEC_PROCESS_KEYRING);
    return reached(result, ENOKEY);
}
