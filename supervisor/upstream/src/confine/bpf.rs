//! Instructions of classic BPF for the seccomp filters of sandboxed upstream servers, and how a filter is installed.
//!
//! Filters compare only the low 32 bits of a system call argument. This suffices, since all arguments that the filters
//! inspect are of type `int`, of which the kernel uses the low half.
#![allow(unsafe_code, reason = "seccomp(2) has no wrapper in nix")]

use std::io;

pub(super) use libc::sock_filter;

/// Byte offset of the system call number in `struct seccomp_data`.
const NUMBER: u32 = 0;
/// Byte offset of the architecture in `struct seccomp_data`.
const ARCHITECTURE: u32 = 4;
/// Byte offset of the first system call argument in `struct seccomp_data`. Each argument has 8 bytes.
const ARGUMENTS: u32 = 16;

/// The architecture of this build: `AUDIT_ARCH_X86_64` or `AUDIT_ARCH_AARCH64`, from linux/audit.h.
#[cfg(target_arch = "x86_64")]
const OWN_ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const OWN_ARCHITECTURE: u32 = 0xc000_00b7;

/// The bit in a system call number that marks calls of the x32 ABI. System call numbers of other ABIs do not have it.
const X32: u32 = 0x4000_0000;

pub(super) const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;
/// The filter's result that makes a system call fail with ENOSYS, as on a kernel without this system call.
pub(super) const UNKNOWN: u32 = refused(libc::ENOSYS);

pub(super) const fn refused(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno as u32
}

/// The first instructions of every filter. They kill a process that uses system calls of another architecture, and
/// refuse system calls of the x32 ABI: both have numbers that the rules do not cover. Then they load the system call
/// number for comparison.
#[rustfmt::skip] // One instruction a line.
pub(super) const HEAD: [sock_filter; 6] = [
    load(ARCHITECTURE),
    when(equals(OWN_ARCHITECTURE), 1, 0),
    answer(libc::SECCOMP_RET_KILL_PROCESS),          // i386 has other numbers, and many calls in one of them.
    load(NUMBER),
    when(at_least(X32), 0, 1),
    answer(UNKNOWN),                                 // x32 has the same calls under other numbers.
];

/// Returns the instruction that loads the low half of the system call argument with this index.
pub(super) const fn argument(index: u32) -> sock_filter {
    load(ARGUMENTS + 8 * index)
}

const fn load(offset: u32) -> sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset)
}

pub(super) const fn and(mask: u32) -> sock_filter {
    instruction(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, mask)
}

pub(super) const fn answer(verdict: u32) -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, verdict)
}

/// Returns the instruction that compares the loaded value with `value`. If the comparison is true, the filter
/// then skips `so` instructions, otherwise `not` instructions.
pub(super) const fn when((comparison, value): (u32, u32), so: u8, not: u8) -> sock_filter {
    instruction(libc::BPF_JMP | comparison | libc::BPF_K, so, not, value)
}

pub(super) const fn equals(value: u32) -> (u32, u32) {
    (libc::BPF_JEQ, value)
}

const fn at_least(value: u32) -> (u32, u32) {
    (libc::BPF_JGE, value)
}

const fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}

/// Installs a seccomp filter on this process permanently. Requires `no_new_privs`.
pub(super) fn install(program: &[sock_filter]) -> io::Result<()> {
    let header = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    // SAFETY: the header points at a live program of its stated length.
    match unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const header) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Interprets a filter as the kernel would and returns its result for a system call.
    fn verdict(program: &[sock_filter], architecture: u32, number: u32, arguments: &[u32]) -> u32 {
        let word = |offset| match offset {
            ARCHITECTURE => architecture,
            NUMBER => number,
            ARGUMENTS.. => arguments[((offset - ARGUMENTS) / 8) as usize],
            other => panic!("reads at {other}"),
        };
        let (mut at, mut accumulator) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            let mut jump = |so| at += usize::from(if so { jt } else { jf });
            match code {
                0x20 => accumulator = word(k),
                0x54 => accumulator &= k,
                0x15 => jump(accumulator == k),
                0x35 => jump(accumulator >= k),
                0x06 => return k,
                other => panic!("instruction {other:#x}"),
            }
            at += 1;
        }
    }

    /// Returns the filter's result for a system call of the native architecture.
    pub(crate) fn own(program: &[sock_filter], number: libc::c_long, arguments: &[u32]) -> u32 {
        verdict(program, OWN_ARCHITECTURE, number as u32, arguments)
    }

    /// Checks that the filter permits no system calls with the numbers of another architecture or of the x32 ABI.
    pub(crate) fn check_other_numbers(program: &[sock_filter]) {
        const I386: u32 = 0x4000_0003;
        for number in 0..600 {
            let x32 = verdict(program, OWN_ARCHITECTURE, number | X32, &[1, 1, 1]);
            assert_eq!(x32, UNKNOWN, "x32 call {number}");
            let i386 = verdict(program, I386, number, &[1, 1, 1]);
            assert_eq!(i386, libc::SECCOMP_RET_KILL_PROCESS, "i386 call {number}");
        }
    }
}
