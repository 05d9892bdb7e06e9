// What every native attack has: raw system calls whose refusal is -errno, and steps that many share.
//
// An attack is one file with one function. Its header says what is attempted; which `layers` hold it if root
// runs this, each alone (`a+b`: only both together), and `user layers` where an ordinary user's differ; its
// `outcome` under the whole seal; and what it `needs` to succeed without any layer.
//
// What an attack needs from outside of the seal (somebody who listens, a segment that exists) it makes in a
// constructor, which runs when the zygote starts, before there is any layer.
#ifndef ATTACK_H
#define ATTACK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

// From 424 on every architecture has the same numbers; older headers lack the newest.
#ifndef SYS_map_shadow_stack
#define SYS_map_shadow_stack 453
#endif
#ifndef SYS_listmount
#define SYS_listmount 458
#endif

// What only x86-64 has is a number that no kernel knows elsewhere.
#ifndef __x86_64__
#define SYS_alarm -1
#define SYS_arch_prctl -1
#define SYS_creat -1
#define SYS_fork -1
#define SYS_ioperm -1
#define SYS_modify_ldt -1
#define SYS_open -1
#endif

// 0 or more: the attack succeeded. Less: it was refused, with this error number.
long attack(void);

static inline long raw_call(long n, long a, long b, long c, long d, long e, long f) {
    long result = syscall(n, a, b, c, d, e, f);
    return result == -1 ? -errno : result;
}

// raw(SYS_name, up to six arguments): all are passed in full width, what is not given is 0.
#define raw(...) RAW_PADDED(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#define RAW_PADDED(n, a, b, c, d, e, f, ...) \
    raw_call(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

// The value of a step that must succeed; a refusal ends the attack with it.
#define TRY(step)                              \
    ({                                         \
        long try_result = (step);              \
        if (try_result < 0) return try_result; \
        try_result;                            \
    })

// For calls that cannot be allowed to succeed: this error is given only after every check of permission.
static inline long reached(long result, int error) {
    return result == -error ? 0 : result;
}

static inline long open_read(const char *path) {
    return raw(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
}

// The first byte of a file, to be sure that it can be read and not only opened.
static inline long read_byte(const char *path) {
    char byte;
    long file = TRY(open_read(path));
    long count = raw(SYS_read, file, &byte, 1);
    raw(SYS_close, file);
    return count;
}

// A path of this process alone.
struct path {
    char name[64];
};

static inline struct path temporary(const char *suffix) {
    struct path path;
    snprintf(path.name, sizeof path.name, "/tmp/lockhouse-attack-%ld%s", raw(SYS_getpid), suffix);
    return path;
}

static inline struct path of_parent(const char *entry) {
    struct path path;
    snprintf(path.name, sizeof path.name, "/proc/%ld/%s", raw(SYS_getppid), entry);
    return path;
}

// Makes an empty file for an attack that needs one.
static inline long make_file(struct path path) {
    long file = TRY(raw(SYS_openat, AT_FDCWD, path.name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    return raw(SYS_close, file);
}

static inline void remove_file(struct path path) {
    raw(SYS_unlinkat, AT_FDCWD, path.name, 0);
}

// Memory as every worker may have it.
static inline long map_private(size_t bytes) {
    return raw(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// Does in a child what changes or ends a process; where no child can be had, here.
static inline long in_child(long (*act)(void)) {
    int status;
    long child = raw(SYS_clone, SIGCHLD);
    if (child < 0) return act();
    if (child == 0) {
        long result = act();
        _exit(result < 0 ? (int)-result : 0);
    }
    if (waitpid((pid_t)child, &status, 0) < 0) return -errno;
    return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
}

// Moves a descriptor of the zygote out of the way of the numbers that the worker uses.
static inline int out_of_the_way(int descriptor) {
    int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, 210);
    close(descriptor);
    return moved;
}

#endif
