// attack: map one memory file twice, to write here what runs there
// layers: seccomp limits
// outcome: EPERM
// note: MDWE looks at each mapping alone; the limit on file sizes keeps the file empty
#include "attack.h"

long attack(void) {
    long file = TRY(raw(SYS_memfd_create, "code", MFD_CLOEXEC));
    TRY(raw(SYS_ftruncate, file, 4096));
    long writable = TRY(raw(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    *(volatile char *)writable = 1;
    return raw(SYS_mmap, NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
}
