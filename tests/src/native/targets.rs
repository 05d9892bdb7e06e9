//! Attacks of a service process whose target the request names: a file, a socket or a process.
#![allow(unsafe_code, reason = "bare system calls, as native code makes them")]

use std::ffi::{CString, c_long};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{FromRawFd, RawFd};

use nix::errno::Errno;

const NONE: c_long = 0;
const ONE: c_long = 1;

/// Makes the attack `request`, the words of which are its name and its target. `listener` is the inherited socket. Returns a
/// negative error number if it fails, and `None` if there is no such attack.
pub(crate) fn make(request: &str, listener: RawFd) -> Option<c_long> {
    let (name, target) = request.split_once(' ').unwrap_or((request, ""));
    let number = || target.parse::<c_long>().unwrap_or(-1);
    Some(match name {
        "open" => open(target, libc::O_RDONLY),
        "append" => open(target, libc::O_WRONLY | libc::O_APPEND),
        "create" => open(target, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL),
        "unix" => connect_unix(target.as_bytes()),
        "abstract" => connect_unix(&[b"\0", target.as_bytes()].concat()),
        "tcp" => connect_inet(libc::SOCK_STREAM, 0, number()),
        "mptcp" => connect_inet(libc::SOCK_STREAM, libc::IPPROTO_MPTCP, number()),
        "udp" => connect_inet(libc::SOCK_DGRAM, 0, number()),
        "end-listener" => {
            refused(unsafe_call(libc::SYS_shutdown, [listener.into(), libc::SHUT_RD.into(), 0, 0]))
        }
        "connect-listener" => connect_listener(listener, number()),
        "pass" => pass(listener),
        "signal" => refused(unsafe_call(libc::SYS_kill, [number(), 0, 0, 0])),
        "trace" => refused(unsafe_call(libc::SYS_ptrace, [libc::PTRACE_SEIZE.into(), number(), 0, 0])),
        "memory" => memory(number()),
        "descriptor" => {
            with_process(number(), |process| refused(unsafe_call(libc::SYS_pidfd_getfd, [process, 0, 0, 0])))
        }
        "signal-by-descriptor" => with_process(number(), |process| {
            refused(unsafe_call(libc::SYS_pidfd_send_signal, [process, 0, 0, 0]))
        }),
        "allocate" => allocate(number()),
        "accept" => accept(listener),
        "log" => refused(unsafe_call(libc::SYS_write, [2, c"a line".as_ptr() as c_long, 6, 0])),
        _ => return None,
    })
}

fn unsafe_call(number: c_long, [a, b, c, d]: [c_long; 4]) -> c_long {
    // SAFETY: every pointer that a caller passes is to live memory of sufficient size, or null.
    unsafe { libc::syscall(number, a, b, c, d, 0, 0) }
}

/// Returns the result of a system call, or its error number as a negative number.
fn refused(result: c_long) -> c_long {
    if result < 0 { -c_long::from(Errno::last_raw()) } else { result }
}

fn open(path: &str, flags: i32) -> c_long {
    let Ok(path) = CString::new(path) else { return -c_long::from(libc::EINVAL) };
    let flags = (flags | libc::O_CLOEXEC).into();
    refused(unsafe_call(libc::SYS_openat, [libc::AT_FDCWD.into(), path.as_ptr() as c_long, flags, 0o600]))
}

fn socket(family: i32, kind: i32, protocol: i32) -> c_long {
    refused(unsafe_call(libc::SYS_socket, [family.into(), kind.into(), protocol.into(), 0]))
}

fn connect_unix(name: &[u8]) -> c_long {
    // SAFETY: a structure of numbers, which is valid when it is zeroed.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as u16;
    for (place, byte) in address.sun_path.iter_mut().zip(name) {
        *place = byte.cast_signed();
    }
    let length = (size_of::<libc::sa_family_t>() + name.len()) as c_long;
    match socket(libc::AF_UNIX, libc::SOCK_STREAM, 0) {
        socket if socket < 0 => socket,
        socket => refused(unsafe_call(libc::SYS_connect, [socket, &raw const address as c_long, length, 0])),
    }
}

fn loopback(port: c_long) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: (port as u16).to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes([127, 0, 0, 1]) },
        sin_zero: [0; 8],
    }
}

fn connect_inet(kind: i32, protocol: i32, port: c_long) -> c_long {
    let address = loopback(port);
    match socket(libc::AF_INET, kind, protocol) {
        socket if socket < 0 => socket,
        socket => refused(unsafe_call(libc::SYS_connect, [socket, &raw const address as c_long, 16, 0])),
    }
}

/// Makes the inherited listener a socket that is not connected, and connects it by sending.
fn connect_listener(listener: RawFd, port: c_long) -> c_long {
    let ended = refused(unsafe_call(libc::SYS_shutdown, [listener.into(), libc::SHUT_RD.into(), 0, 0]));
    if ended < 0 {
        return ended;
    }
    let (address, text) = (loopback(port), c"x".as_ptr() as c_long);
    let listener = c_long::from(listener);
    let (flags, length) = (c_long::from(libc::MSG_FASTOPEN), size_of_val(&address) as c_long);
    // SAFETY: the byte and the address are live, and have the given lengths.
    refused(unsafe {
        libc::syscall(libc::SYS_sendto, listener, text, ONE, flags, &raw const address as c_long, length)
    })
}

/// Passes a descriptor to the peer of the standard input, with an empty line.
fn pass(descriptor: RawFd) -> c_long {
    let (part, rights) = ([std::io::IoSlice::new(b"\n")], [descriptor]);
    let control = [nix::sys::socket::ControlMessage::ScmRights(&rights)];
    let flags = nix::sys::socket::MsgFlags::empty();
    match nix::sys::socket::sendmsg::<()>(0, &part, &control, flags, None) {
        Ok(count) => count as c_long,
        Err(errno) => -c_long::from(errno as i32),
    }
}

/// Reads memory of a process at address 0. The kernel says that nothing is there only after it has checked the permission.
fn memory(process: c_long) -> c_long {
    let mut byte = 0_u8;
    let here = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let there = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 1 };
    let (here, there) = (&raw const here as c_long, &raw const there as c_long);
    // SAFETY: both lists have one element, and the byte is written by nothing else.
    let read =
        refused(unsafe { libc::syscall(libc::SYS_process_vm_readv, process, here, ONE, there, ONE, NONE) });
    if read == -c_long::from(libc::EFAULT) { 0 } else { read }
}

fn with_process(process: c_long, act: fn(c_long) -> c_long) -> c_long {
    match refused(unsafe_call(libc::SYS_pidfd_open, [process, 0, 0, 0])) {
        opened if opened < 0 => opened,
        opened => act(opened),
    }
}

/// Uses a number of MiB of memory. Returns the number of its pages.
fn allocate(mebibytes: c_long) -> c_long {
    let mut memory = vec![0_u8; (mebibytes as usize) << 20];
    memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    memory.iter().step_by(4096).map(|byte| c_long::from(*byte)).sum()
}

/// Accepts a connection, and sends back what it sends, as a front does. Returns the number of bytes.
fn accept(listener: RawFd) -> c_long {
    let flags = c_long::from(libc::SOCK_CLOEXEC);
    let connection = refused(unsafe_call(libc::SYS_accept4, [listener.into(), 0, 0, flags]));
    if connection < 0 {
        return connection;
    }
    // SAFETY: the kernel has just opened this descriptor for this process.
    let stream = unsafe { TcpStream::from_raw_fd(connection as RawFd) };
    let answered = answer(stream);
    answered.unwrap_or_else(|error| -error.raw_os_error().map_or(1, c_long::from))
}

fn answer(mut stream: TcpStream) -> std::io::Result<c_long> {
    let mut text = [0_u8; 64];
    stream.set_nodelay(true)?;
    stream.peek(&mut text[..1])?;
    let length = stream.read(&mut text)?;
    stream.write_all(&text[..length])?;
    stream.shutdown(Shutdown::Write)?;
    Ok(length as c_long)
}
