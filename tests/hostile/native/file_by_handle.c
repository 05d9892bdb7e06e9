// attack: open a file of the host by its handle (the way out of early containers)
// layers: seccomp landlock namespaces privileges
// outcome: EPERM
// needs: root
#include "attack.h"

long attack(void) {
    struct {
        struct file_handle head;
        char room[MAX_HANDLE_SZ];
    } handle = {.head.handle_bytes = MAX_HANDLE_SZ};
    int mount;
    TRY(raw(SYS_chdir, "/dev"));
    TRY(raw(SYS_name_to_handle_at, AT_FDCWD, "null", &handle, &mount, 0));
    return raw(SYS_open_by_handle_at, AT_FDCWD, &handle, O_RDONLY);
}
