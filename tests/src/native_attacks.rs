//! The native attacks of `hostile/native` (C functions), each with the expectations from its header: the comment at the
//! top of its source file.

use std::path::{Path, PathBuf};

use lockhouse_sandbox::Layer;

use crate::target_directory;

/// One native attack: a C function that a worker executes inside its sandbox.
#[derive(Clone, Debug)]
pub struct NativeAttack {
    /// The name of the attack's file, without the extension. A worker runs the attack when it receives this name as
    /// code.
    pub name: String,
    /// A description of what the attack attempts.
    pub attempt: String,
    /// The sandbox layers that stop the attack when Lockhouse runs as root. Each inner list is one alternative: a
    /// layer that suffices, or several that suffice together. Empty if only a control group stops the attack.
    pub layers: Vec<Vec<Layer>>,
    /// The sandbox layers that stop the attack when an ordinary user runs Lockhouse. Each inner list is one
    /// alternative: a layer that suffices, or several that suffice together.
    pub user_layers: Vec<Vec<Layer>>,
    /// The expected outcome of the attack in the complete sandbox: the name of an error number or of a signal, or
    /// `limit` if a resource limit stops the attack.
    pub outcome: String,
    /// The requirements on the host, such as `root` or `landlock 6`. The attack needs some of them to succeed without
    /// sandbox layers. The layers need the others to stop the attack.
    pub needs: Vec<String>,
}

/// Formats alternatives of sandbox layers as they are written in the header of an attack, such as `a+b c`: `a` and `b`
/// together suffice, or `c` alone.
#[must_use]
pub fn layers_in_words(layers: &[Vec<Layer>]) -> String {
    let together =
        |layers: &Vec<Layer>| layers.iter().map(|layer| layer.name()).collect::<Vec<_>>().join("+");
    layers.iter().map(together).collect::<Vec<_>>().join(" ")
}

/// Returns all native attacks, sorted by name.
///
/// # Panics
/// If the comment at the top of a source file is not a valid header.
#[must_use]
pub fn native_attacks() -> Vec<NativeAttack> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("hostile/native");
    let files = std::fs::read_dir(folder).expect("the attacks").map(|entry| entry.expect("a file").path());
    let mut files: Vec<PathBuf> =
        files.filter(|file| file.extension().is_some_and(|extension| extension == "c")).collect();
    files.sort();
    files.iter().map(|file| parse(file)).collect()
}

/// Returns the path of the worker program that runs native attacks.
#[must_use]
pub fn native_worker() -> PathBuf {
    target_directory().join("native-worker")
}

fn parse(file: &Path) -> NativeAttack {
    let text = std::fs::read_to_string(file).expect("the attack");
    let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
    let mut attack = NativeAttack {
        name: name.clone(),
        attempt: String::new(),
        layers: Vec::new(),
        user_layers: Vec::new(),
        outcome: String::new(),
        needs: Vec::new(),
    };
    let mut user_layers = None;
    for line in text.lines().map_while(|line| line.strip_prefix("// ")) {
        let (key, value) = line.split_once(": ").unwrap_or(("", line));
        match key {
            "attack" => attack.attempt = value.to_owned(),
            // Only a control group stops this attack.
            "layers" if value == "none" => {}
            // Only a control group stops this attack.
            "layers" if value == "none" => {}
            "layers" => attack.layers = any_of(&name, value),
            "user layers" => user_layers = Some(any_of(&name, value)),
            "outcome" => attack.outcome = value.to_owned(),
            "needs" => attack.needs.push(value.to_owned()),
            // Other comment lines are remarks.
            _ => {}
        }
    }
    attack.user_layers = user_layers.unwrap_or_else(|| attack.layers.clone());
    let reported = [&attack.attempt, &attack.outcome];
    assert!(reported.iter().all(|text| !text.is_empty()), "the header of {name}");
    attack
}

/// Parses alternatives of sandbox layers, separated by spaces. Each is a layer `a`, or `a+b` if both layers are needed
/// together. Panics, naming the attack `attack`, if there is no such layer.
fn any_of(attack: &str, layers: &str) -> Vec<Vec<Layer>> {
    let together = |layers: &str| layers.split('+').map(|layer| named(attack, layer)).collect();
    layers.split(' ').map(together).collect()
}

fn named(attack: &str, name: &str) -> Layer {
    let layer = Layer::ALL.into_iter().find(|layer| layer.name() == name);
    layer.unwrap_or_else(|| panic!("{attack}: there is no layer {name:?}"))
}
