// attack: get a handle for a file of the host, which is good for opening it past its path
// layers: seccomp namespaces
// outcome: SIGSYS
#include "attack.h"

long attack(void) {
    struct {
        struct file_handle head;
        char room[MAX_HANDLE_SZ];
    } handle = {.head.handle_bytes = MAX_HANDLE_SZ};
    int mount;
    return raw(SYS_name_to_handle_at, AT_FDCWD, "/dev/null", &handle, &mount, 0);
}
