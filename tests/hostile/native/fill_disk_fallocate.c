// attack: reserve space on the disk without writing
// layers: seccomp landlock namespaces limits
// outcome: EPERM
// needs: feature fallocate in the file system of /tmp
#include "attack.h"

long attack(void) {
    struct path path = temporary("");
    long file = TRY(raw(SYS_openat, AT_FDCWD, path.name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    long result = raw(SYS_fallocate, file, 0, 0, 1 << 20);
    raw(SYS_close, file);
    remove_file(path);
    return result;
}
