// attack: take a copy of the tree of mounts
// layers: seccomp privileges
// outcome: SIGSYS
// needs: root
#include "attack.h"
#include <linux/mount.h>

long attack(void) {
    return raw(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
}
