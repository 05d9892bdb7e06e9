//! Paths that every sandboxed upstream server may use, because programs need them to run at all. No home directory is
//! among them.

use std::path::Path;

use landlock::AccessFs;

use super::program::Program;
use super::{Rule, grant, reading};

/// Directories of the system's programs and libraries.
const SYSTEM: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"];

/// Paths with configuration and system information that system libraries read. Not all of /etc is listed, since it also
/// contains private keys.
const SETTINGS: [&str; 39] = [
    // The dynamic loader.
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    // Names of hosts, services and users. Resolvers replace their file below /run, so the directory is listed.
    "/etc/resolv.conf",
    "/run/systemd/resolve",
    "/run/NetworkManager",
    "/run/resolvconf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/hostname",
    "/etc/gai.conf",
    "/etc/nsswitch.conf",
    "/etc/services",
    "/etc/protocols",
    "/etc/passwd",
    "/etc/group",
    // Certificates, without the private keys beside them.
    "/etc/ssl/certs",
    "/etc/ssl/cert.pem",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/openssl.cnf",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    // Time zone and locale.
    "/etc/localtime",
    "/etc/timezone",
    "/etc/locale.alias",
    "/etc/mime.types",
    "/etc/os-release",
    // Debian's Python reads sitecustomize.py from these.
    "/etc/python3.10",
    "/etc/python3.11",
    "/etc/python3.12",
    "/etc/python3.13",
    "/etc/python3.14",
    // All of /proc, since child processes have other PIDs. Memory, environment and descriptors of processes outside
    // are still refused, because Landlock denies tracing them.
    "/proc",
    // The number of processors and the amount of memory.
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
];

/// Device files that a sandboxed server may read and write. They store no data.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Returns the Landlock rules for those default paths that exist, and for the files of the server's program.
pub(super) fn rules(program: &Program) -> Vec<Rule> {
    let settings = AccessFs::ReadFile | AccessFs::ReadDir;
    let devices = AccessFs::ReadFile | AccessFs::WriteFile;
    let system = SYSTEM.iter().filter_map(|path| grant(Path::new(path), reading()).ok());
    let settings = SETTINGS.iter().filter_map(|path| grant(Path::new(path), settings).ok());
    let devices = DEVICES.iter().filter_map(|path| grant(Path::new(path), devices).ok());
    let program = program.files().filter_map(|path| grant(path, reading()).ok());
    system.chain(settings).chain(devices).chain(program).collect()
}
