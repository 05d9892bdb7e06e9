//! The native attacks and bare system calls that a test program makes on request.
#![allow(unsafe_code, reason = "the attacks are C functions and bare system calls")]

use std::ffi::c_long;

include!(concat!(env!("OUT_DIR"), "/attacks.rs"));

/// Makes the attack that `request` names, `call NUMBER ARGUMENT...` or `int80 NUMBER`. Returns a negative error number if it
/// fails, and `None` if there is no such attack.
pub(crate) fn make(request: &str) -> Option<c_long> {
    match request.split_once(' ') {
        Some(("call", call)) => bare_call(call),
        Some(("int80", number)) => number.parse().ok().map(int80),
        _ => attack(request),
    }
}

fn attack(name: &str) -> Option<c_long> {
    let (_, function) = ATTACKS.iter().find(|(known, _)| *known == name)?;
    // SAFETY: the C function takes no arguments. Its other effects are the attack.
    Some(unsafe { function() })
}

/// Makes the system call that `text` states as `NUMBER ARGUMENT...`, with up to six arguments. Returns `-errno` if
/// the call fails, and `None` if the text is invalid.
fn bare_call(text: &str) -> Option<c_long> {
    let mut numbers = text.split(' ').map(str::parse::<c_long>);
    let number = numbers.next()?.ok()?;
    let mut arguments = [0; 6];
    for (argument, given) in arguments.iter_mut().zip(numbers) {
        *argument = given.ok()?;
    }
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the system call is hostile on purpose; this process runs nothing else.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    Some(if result < 0 { -c_long::from(nix::errno::Errno::last_raw()) } else { result })
}

/// Makes an i386 system call (`int 0x80`) whose arguments are 0, and returns its result.
#[cfg(target_arch = "x86_64")]
fn int80(number: c_long) -> c_long {
    let mut result = number;
    // SAFETY: the system call is hostile on purpose; all its arguments are 0.
    unsafe {
        std::arch::asm!(
            "push rbx", "xor ebx, ebx", "int 0x80", "pop rbx",
            inout("rax") result, in("rcx") 0, in("rdx") 0, in("rsi") 0, in("rdi") 0,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    result
}

/// Returns `-ENOSYS`, because this architecture has no `int 0x80` instruction.
#[cfg(not(target_arch = "x86_64"))]
fn int80(_: c_long) -> c_long {
    -c_long::from(libc::ENOSYS)
}
