// attack: write to a new file
// layers: seccomp landlock namespaces limits
// outcome: EPERM
#include "attack.h"

long attack(void) {
    struct path path = temporary("");
    long file = TRY(raw(SYS_openat, AT_FDCWD, path.name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    long result = raw(SYS_write, file, "full", 4);
    raw(SYS_close, file);
    remove_file(path);
    return result;
}
