//! Native code in a front attacks the engine, other fronts and the host: with all layers, without each of them, and without
//! any, as root and as an ordinary user, and where the host refuses user namespaces.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use lockhouse_sandbox::{Layer, Layers};
use lockhouse_tests::{
    BareService, CommandOutput, End, NativeAttack, Table, ensure, equal, native_attacks, native_worker,
};

use crate::sandbox::ablation::{Ends, Host, Runner, UNPRIVILEGED_UID, check_ends, format_end, is_contained};
use crate::sandbox::service_targets::{self, Targets, any_of};

/// Native attacks of which the headers, which are about workers, name other layers: those that hold them in a front which root
/// starts, and in one which an ordinary user starts.
const LAYERS_OF_FRONTS: &[(&str, &str, &str)] = &[
    // A front starts no thread after it is sealed, so its limit is 0.
    ("bomb_threads", "seccomp limits+privileges", "seccomp limits"),
    ("clone_user_namespace", "seccomp limits+privileges", "seccomp limits"),
    ("fork_process", "seccomp limits+privileges", "seccomp limits"),
    ("fork_process_clone3", "seccomp limits+privileges", "seccomp limits"),
    ("fork_process_fork", "seccomp limits+privileges", "seccomp limits"),
    ("fork_process_vfork", "seccomp limits+privileges", "seccomp limits"),
    // A worker may open what they open, up to its limit.
    ("bomb_descriptors", "seccomp limits", "seccomp limits"),
    ("bomb_pipes", "seccomp limits", "seccomp limits"),
    // A zygote has the user of its workers; the engine of root is root.
    ("parent_affinity", "seccomp privileges", "seccomp"),
    ("parent_io_priority", "seccomp privileges", "seccomp"),
    ("parent_limits", "seccomp privileges", "seccomp"),
    ("parent_priority", "seccomp privileges", "seccomp"),
    ("parent_scheduler", "seccomp privileges", "seccomp"),
];

/// Native attacks that cannot succeed in a service process even without layers.
const LEFT_OUT: [(&str, &str); 6] = [
    ("advise_parent_memory", "an executed process does not have the addresses of its parent"),
    ("read_parent_memory", "the same; `memory {PARENT}` replaces it"),
    ("write_parent_memory", "the same"),
    ("mptcp_connect", "its server ends when the process closes its descriptors; `mptcp {TCP}` replaces it"),
    ("path_socket", "the same; `unix {DIR}/control.sock` replaces it"),
    ("reopen_descriptor", "the standard input is a socket, which nobody can open anew"),
];

/// Native attacks that cannot succeed where the host refuses namespaces.
const NEED_UNSHARE: [&str; 5] =
    ["mount_file_system", "unmount", "unshare_files", "unshare_mounts", "unshare_user_namespace"];

/// What a front must still do, and the expected result with what its client receives and its parent reads.
const CONTROLS: &[(&str, &str, &str, &str)] = &[
    ("accept", "5", "hello", ""),
    ("thread accept", "5", "hello", ""),
    ("log", "6", "", "a line"),
    ("allocate 64", "16384", "", ""),
    ("thread allocate 64", "16384", "", ""),
];

/// Copies the programs to a directory in which every user can execute them.
fn programs() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["native-service", "native-worker", "lacking"] {
        std::fs::copy(native_worker().with_file_name(name), directory.path().join(name)).unwrap();
    }
    directory
}

/// Returns all attacks, with the layers that hold them in a front.
fn attacks() -> Vec<NativeAttack> {
    let of_front = |mut attack: NativeAttack| {
        if let Some((_, layers, user_layers)) =
            LAYERS_OF_FRONTS.iter().find(|(name, ..)| *name == attack.name)
        {
            (attack.layers, attack.user_layers) = (any_of(layers), any_of(user_layers));
        }
        if attack.layers.contains(&vec![Layer::Seccomp]) {
            attack.outcome = "SIGSYS".into();
        }
        // The engine of an ordinary user is dumpable here, other than a zygote.
        if attack.name.contains("parent") {
            attack.user_layers.retain(|layers| *layers != [Layer::Hardening]);
        }
        attack
    };
    let is_left_out = |attack: &NativeAttack| LEFT_OUT.iter().any(|(name, _)| *name == attack.name);
    let native = native_attacks().into_iter().filter(|attack| !is_left_out(attack)).map(of_front);
    native.chain(service_targets::attacks()).collect()
}

/// A host on which fronts are attacked.
struct Place {
    programs: tempfile::TempDir,
    user: Option<u32>,
    /// A feature that the host lacks.
    lack: Option<&'static str>,
}

impl Place {
    fn new(user: Option<u32>, lack: Option<&'static str>) -> Self {
        Self { programs: programs(), user, lack }
    }

    fn start(&self, kind: &str, layers: Layers) -> BareService {
        BareService::start(self.programs.path(), kind, layers, self.user, self.lack)
    }

    /// Runs every attack with all layers, with none, and without each of the layers `without`, and checks which layers hold it.
    fn check(&self, title: &str, without: &[Layer]) {
        let named = |layer: &Layer| (format!("without {}", layer.name()), Layers::ALL.without(*layer));
        let ends = [("all".to_owned(), Layers::ALL), ("none".to_owned(), Layers::NONE)];
        let configurations = ends.into_iter().chain(without.iter().map(named));
        let (mut attacks, mut ends) = (attacks(), Ends::new());
        attacks.retain(|attack| self.lack.is_none() || !NEED_UNSHARE.contains(&attack.name.as_str()));
        for (name, layers) in configurations {
            let (targets, mut front) = (Targets::new(), self.start("front", layers));
            let mut passed = Vec::new();
            for attack in &attacks {
                let (end, ..) = front.attack(&targets.fill_placeholders(&attack.name));
                if !is_contained(&end) {
                    passed.push(attack.name.as_str());
                }
                ends.entry(attack.name.clone()).or_default().push((name.clone(), layers, end));
            }
            println!("{name}: {} of {} attacks pass: {}", passed.len(), attacks.len(), passed.join(", "));
        }
        let worker = self.programs.path().join("native-worker");
        let mut host = Host::inspect(&Runner { worker, user: self.user });
        host.absent.extend(self.lack.map(|_| Layer::Namespaces));
        check_ends(title, &host, &attacks, &ends);
    }
}

/// Returns the places where fronts run: started by root, by an ordinary user, and by one to whom the host refuses namespaces.
fn places() -> Vec<(&'static str, Place)> {
    let user = nix::unistd::geteuid().is_root().then_some(UNPRIVILEGED_UID);
    let mut places = vec![("ordinary user", Place::new(user, None))];
    places.push(("no namespaces", Place::new(user, Some("namespaces"))));
    if user.is_some() {
        places.push(("root", Place::new(None, None)));
        places.push(("root, no namespaces", Place::new(None, Some("namespaces"))));
    }
    places
}

#[test]
fn native_code_in_a_front_is_contained_by_the_layers_of_its_row() {
    Place::new(None, None).check("native attacks in a front", &Layer::ALL);
}

#[test]
fn native_code_in_the_front_of_an_ordinary_user_is_contained() {
    let user = nix::unistd::geteuid().is_root().then_some(UNPRIVILEGED_UID);
    Place::new(user, None).check("an ordinary user", &[Layer::Seccomp]);
    Place::new(user, Some("namespaces")).check("an ordinary user without namespaces", &[Layer::Seccomp]);
    Place::new(None, Some("namespaces")).check("the user of the tests without namespaces", &[]);
}

/// The thread would have access to files, and nothing would tell.
#[test]
fn a_service_that_starts_a_thread_before_landlock_ends() {
    let programs = native_worker().parent().unwrap().to_owned();
    let mut table = Table::new("a thread that is started too early");
    for lack in ["mdwe", "namespaces"] {
        let service = programs.join("native-service").display().to_string();
        let mut command = Command::new(programs.join("lacking"));
        command.args([lack, "--", &service, "service", "0", "front", "early-thread"]);
        let ended = CommandOutput::run(&mut command, b"");
        let told = ended.status == Some(1) && ended.stderr.contains("the process has a second thread");
        table.row(format!("without {lack}"), ensure(told, ended));
    }
    table.finish();
}

#[test]
fn a_sealed_front_serves_its_listener() {
    let mut table = Table::new("what a sealed front does");
    for (place, front) in places() {
        for layers in [Layers::ALL, Layers::NONE] {
            let mut front = front.start("front", layers);
            for (request, result, received, log) in CONTROLS {
                let expected = (End::Value((*result).to_owned()), (*log).to_owned(), (*received).to_owned());
                let name = if layers == Layers::ALL { "all layers" } else { "no layer" };
                table.row(format!("{place}: {name}: {request}"), equal(front.attack(request), expected));
            }
        }
    }
    table.finish();
}

#[test]
fn a_sealed_signer_does_less_than_a_front() {
    let mut table = Table::new("native attacks in a signer");
    for (place, signer) in places() {
        let (targets, mut sealed) = (Targets::new(), signer.start("signer", Layers::ALL));
        for request in ["log", "allocate 64"] {
            let (end, ..) = sealed.attack(request);
            table.row(format!("{place}: it may {request}"), ensure(!is_contained(&end), end));
        }
        for attack in service_targets::attacks().iter().filter(|attack| !attack.name.starts_with("thread")) {
            let (end, ..) = sealed.attack(&targets.fill_placeholders(&attack.name));
            table.row(format!("{place}: {}", attack.name), equal(format_end(&end), "SIGSYS".into()));
        }
        for request in ["accept", "call 0 -1", "call 10 0 4096 1"] {
            let (end, ..) = sealed.attack(request);
            table.row(format!("{place}: a front may {request}"), equal(format_end(&end), "SIGSYS".into()));
        }
    }
    table.finish();
}
