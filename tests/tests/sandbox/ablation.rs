//! Runs native attacks under many combinations of sandbox layers: all layers, all but one, one alone, and none. The
//! source file of each attack in `hostile/native` names in its header the layers that stop the attack: one or more sets
//! of layers. The attack must fail exactly where all layers of at least one of these sets are active. Without any layer
//! it must succeed, which shows that nothing else stops it.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use lockhouse_protocol::{Exit, Verdict};
use lockhouse_tests::{BareZygote, End, NativeAttack, Table, layers_in_words, native_attacks, native_worker};

use lockhouse_sandbox::{Layer, Layers};
use nix::errno::Errno;
use nix::sys::signal::Signal;

/// The id of an unprivileged user who owns no files or processes on this machine.
pub(super) const UNPRIVILEGED_UID: u32 = 61_501;

/// How every attack ended, by its name, under each combination of layers, which has a name.
pub(super) type Ends = BTreeMap<String, Vec<(String, Layers, End)>>;

/// Returns the combinations of sandbox layers to test, each with the name of its table row.
fn configurations() -> Vec<(String, Layers)> {
    let without = |layer: Layer| (format!("without {}", layer.name()), Layers::ALL.without(layer));
    let alone = |layer: Layer| (format!("{} alone", layer.name()), Layers::NONE.with(layer));
    let ends = [("all".to_owned(), Layers::ALL), ("none".to_owned(), Layers::NONE)];
    ends.into_iter().chain(Layer::ALL.map(without)).chain(Layer::ALL.map(alone)).collect()
}

/// The worker executable, and the user who runs the attacks.
pub(super) struct Runner {
    /// The path of the native worker executable. The user who runs the attacks can read it.
    pub(super) worker: PathBuf,
    /// The id of the unprivileged user to switch to; `None` if the attacks run as the user of the tests.
    pub(super) user: Option<u32>,
}

impl Runner {
    fn is_root(&self) -> bool {
        self.user.is_none() && nix::unistd::geteuid().is_root()
    }

    fn start(&self, layers: Layers) -> BareZygote {
        let on: Vec<&str> =
            Layer::ALL.into_iter().filter(|layer| layers.has(*layer)).map(Layer::name).collect();
        BareZygote::start(&self.worker, &["--layers", &on.join(",")], self.user)
    }
}

/// Properties of this machine on which the outcome of attacks depends.
pub(super) struct Host {
    is_root: bool,
    landlock: u32,
    kernel: (u32, u32),
    /// The layers that this machine does not have.
    pub(super) absent: Vec<Layer>,
}

impl Host {
    pub(super) fn inspect(runner: &Runner) -> Self {
        let zygote = runner.start(Layers::ALL);
        let is_absent = |layer: &Layer| {
            let protection = match layer {
                Layer::Namespaces => lockhouse_protocol::Protection::EmptyRoot,
                Layer::Mdwe => lockhouse_protocol::Protection::WriteXorExecute,
                _ => return false,
            };
            let found = zygote.findings.iter().find(|finding| finding.protection == protection);
            found.is_some_and(|finding| finding.verdict != Verdict::Holds)
        };
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a kernel");
        let mut numbers = release.split(['.', '-']).map_while(|part| part.parse().ok());
        let landlock = zygote
            .findings
            .iter()
            .find_map(|finding| finding.found.strip_prefix("ABI ")?.split(':').next()?.parse().ok());
        Self {
            is_root: runner.is_root(),
            landlock: landlock.unwrap_or(1),
            kernel: (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)),
            absent: Layer::ALL.into_iter().filter(is_absent).collect(),
        }
    }

    /// Returns the sets of sandbox layers that stop the attack when the user of these attacks makes it. The layers of one set
    /// stop it together; each set is sufficient.
    fn layers<'a>(&self, attack: &'a NativeAttack) -> &'a [Vec<Layer>] {
        if self.is_root { &attack.layers } else { &attack.user_layers }
    }

    /// Returns whether this machine supports what the layer needs to stop the attack, such as a Landlock version.
    fn can_contain(&self, layer: Layer, attack: &NativeAttack) -> bool {
        let gives = |need: &String| match need.split_once(' ') {
            Some(("landlock", abi)) if layer == Layer::Landlock => {
                abi.parse::<u32>().is_ok_and(|abi| abi <= self.landlock)
            }
            Some(("limits", version)) if layer == Layer::Limits => self.has_kernel(version),
            _ => true,
        };
        !self.absent.contains(&layer) && attack.needs.iter().all(gives)
    }

    fn has_kernel(&self, version: &str) -> bool {
        let mut numbers = version.split('.').map_while(|part| part.parse().ok());
        self.kernel >= (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    }

    /// Returns the attack's requirement that this machine does not meet, such as root or a kernel version; `None` if
    /// the machine meets all.
    fn missing_requirement<'a>(&self, attack: &'a NativeAttack) -> Option<&'a str> {
        let lacks = |need: &&String| match need.split_once(' ') {
            None if *need == "root" => !self.is_root,
            None if *need == "x86_64" => !cfg!(target_arch = "x86_64"),
            Some(("ordinary", _)) => self.is_root,
            Some(("kernel", version)) => !self.has_kernel(version),
            Some(("sysctl", setting)) => is_set_otherwise(setting),
            Some(("user", need)) => {
                !self.is_root && need.strip_prefix("sysctl ").is_some_and(is_set_otherwise)
            }
            _ => false,
        };
        attack.needs.iter().find(lacks).map(String::as_str)
    }
}

/// Returns whether the sysctl setting `setting`, given as `name=value`, exists on this machine with another value.
fn is_set_otherwise(setting: &str) -> bool {
    let (name, wanted) = setting.split_once('=').expect("name=value");
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    std::fs::read_to_string(path).is_ok_and(|value| value.trim() != wanted)
}

/// Returns whether the layer stops the attack only if the kernel has a certain patch. The kernel's version does not
/// show whether it has the patch.
fn needs_patch(layer: Layer, attack: &NativeAttack) -> bool {
    attack.needs.iter().any(|need| need.strip_prefix("patched ") == Some(layer.name()))
}

pub(super) fn is_contained(end: &End) -> bool {
    match end {
        End::Value(result) => result.starts_with('-'),
        End::Exited(_) => true,
        End::TimedOut | End::Other(_) => false,
    }
}

/// Formats how an attack ended, in the words that the headers of the attacks use.
pub(super) fn format_end(end: &End) -> String {
    match end {
        End::Value(result) => match result.strip_prefix('-').and_then(|errno| errno.parse().ok()) {
            Some(errno) => format!("{:?}", Errno::from_raw(errno)),
            None => format!("succeeded ({result})"),
        },
        End::Exited(Exit::Signal(number)) => {
            Signal::try_from(*number).map_or_else(|_| number.to_string(), |signal| signal.to_string())
        }
        End::Exited(Exit::Status(status)) => format!("status {status}"),
        End::TimedOut => "hung".into(),
        End::Other(words) => words.clone(),
    }
}

/// Returns the kernel feature that the attack needs, if this kernel lacks it. This is the case if the attack
/// failed without sandbox layers with an error such as ENOSYS. `ends` has the attack's outcomes under all
/// combinations of layers.
fn missing_feature<'a>(attack: &'a NativeAttack, ends: &[(String, Layers, End)]) -> Option<&'a str> {
    let feature = attack.needs.iter().find(|need| need.starts_with("feature "))?;
    let (.., control) = ends.iter().find(|(_, layers, _)| *layers == Layers::NONE)?;
    let absent =
        ["ENOSYS", "EAFNOSUPPORT", "EOPNOTSUPP", "EPROTONOSUPPORT", "ENODEV", "ENOENT", "EINVAL", "SIGSEGV"];
    absent.contains(&format_end(control).as_str()).then_some(feature)
}

/// Runs every attack under every combination of sandbox layers. Returns how they ended.
fn run_all(runner: &Runner, attacks: &[NativeAttack]) -> Ends {
    let mut ends = Ends::new();
    for (name, layers) in configurations() {
        let zygote = runner.start(layers);
        for attack in attacks {
            let end = zygote.run(&attack.name);
            ends.entry(attack.name.clone()).or_default().push((name.clone(), layers, end));
        }
    }
    ends
}

fn check(title: &str, runner: &Runner) {
    let attacks = native_attacks();
    check_ends(title, &Host::inspect(runner), &attacks, &run_all(runner, &attacks));
}

/// Checks that each attack was contained under exactly those combinations that have one of its sets of layers. The first
/// combination is that of all layers.
pub(super) fn check_ends(title: &str, host: &Host, attacks: &[NativeAttack], ends: &Ends) {
    let mut table = Table::new(title);
    for attack in attacks {
        let (ends, known) = (&ends[&attack.name], host.layers(attack));
        let lacking = host.missing_requirement(attack).or_else(|| missing_feature(attack, ends));
        let mut faults = Vec::new();
        for (name, layers, end) in ends {
            let holds = |together: &&Vec<Layer>| {
                together.iter().all(|layer| layers.has(*layer) && host.can_contain(*layer, attack))
            };
            let sure = |together: &Vec<Layer>| !together.iter().any(|layer| needs_patch(*layer, attack));
            let expected = known.iter().any(|together| holds(&together));
            if expected && !known.iter().filter(holds).any(sure) {
                continue;
            }
            // An attack that cannot succeed on this machine shows nothing when it fails.
            if (expected || lacking.is_none()) && is_contained(end) != expected {
                faults.push(format!("{name}: {}", format_end(end)));
            }
        }
        let under_all = format_end(&ends[0].2);
        if attack.outcome != "limit" && under_all != attack.outcome {
            faults.push(format!("all: {under_all} instead of {}", attack.outcome));
        }
        let left_out = lacking.map(|need| format!(" (no control here: it needs {need})")).unwrap_or_default();
        let row = format!("{}: {} [{}]{left_out}", attack.name, attack.attempt, layers_in_words(known));
        table.row(row, if faults.is_empty() { Ok(()) } else { Err(faults.join("; ")) });
    }
    let held_twice = attacks.iter().filter(|attack| host.layers(attack).len() > 1).count();
    println!("{} attacks, {held_twice} of them held by more than one layer", attacks.len());
    table.finish();
}

#[test]
fn each_attack_is_contained_by_exactly_the_layers_in_its_header() {
    check("native attacks under every set of layers", &Runner { worker: native_worker(), user: None });
}

/// Runs the attacks in a worker that an ordinary user has started, as on a desktop. A worker of root is restricted
/// further, because it also changes to an unprivileged user.
#[test]
fn each_attack_of_an_ordinary_users_worker_is_contained_by_the_layers_in_its_header() {
    if !nix::unistd::geteuid().is_root() {
        println!("left out: the test above has run as an ordinary user");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let worker = directory.path().join("native-worker");
    std::fs::copy(native_worker(), &worker).unwrap();
    check("native attacks of an ordinary user", &Runner { worker, user: Some(UNPRIVILEGED_UID) });
}
