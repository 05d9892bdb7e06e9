//! What a program needs to run at all. Nothing of anybody's home is among it.

use std::path::Path;

use landlock::AccessFs;

use super::program::Program;
use super::{Rule, grant, reading};

/// The system's programs and libraries.
const SYSTEM: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"];

/// What their libraries read. Not all of /etc: where this user is root, there are keys in it.
const SETTINGS: [&str; 39] = [
    // The loader.
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    // Names of hosts, services and users. Resolvers replace their file below /run: the folder is what stays.
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
    // Certificates, without the keys beside them.
    "/etc/ssl/certs",
    "/etc/ssl/cert.pem",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/openssl.cnf",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    // Clock and language.
    "/etc/localtime",
    "/etc/timezone",
    "/etc/locale.alias",
    "/etc/mime.types",
    "/etc/os-release",
    // Debian's Python reads sitecustomize.py there.
    "/etc/python3.10",
    "/etc/python3.11",
    "/etc/python3.12",
    "/etc/python3.13",
    "/etc/python3.14",
    // A process's own part of it cannot be named: its children have others. Memory, environment and files of processes
    // outside are refused all the same, since Landlock lets nobody trace them.
    "/proc",
    // How many processors, how much memory.
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
];

/// Read and written; they keep nothing.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// As far as they are there.
pub(super) fn rules(program: &Program) -> Vec<Rule> {
    let settings = AccessFs::ReadFile | AccessFs::ReadDir;
    let devices = AccessFs::ReadFile | AccessFs::WriteFile;
    let system = SYSTEM.iter().filter_map(|path| grant(Path::new(path), reading()).ok());
    let settings = SETTINGS.iter().filter_map(|path| grant(Path::new(path), settings).ok());
    let devices = DEVICES.iter().filter_map(|path| grant(Path::new(path), devices).ok());
    let program = program.files().filter_map(|path| grant(path, reading()).ok());
    system.chain(settings).chain(devices).chain(program).collect()
}
