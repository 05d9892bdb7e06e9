//! The native attacks of `hostile/native`, as their headers describe them.

use std::path::{Path, PathBuf};

use lockhouse_worker::sandbox::Layer;

use crate::lockhouse::target_directory;

/// One attack.
#[derive(Clone, Debug)]
pub struct NativeAttack {
    /// The file's name, which is the program of a job.
    pub name: String,
    /// What is attempted, in words.
    pub attempt: String,
    /// What holds it where Lockhouse runs as root: a layer alone, or several together. Nothing, where it takes a control
    /// group.
    pub layers: Vec<Vec<Layer>>,
    /// The same where an ordinary user runs it.
    pub user_layers: Vec<Vec<Layer>>,
    /// What happens under the whole seal: the name of an error number or signal, or `limit`.
    pub outcome: String,
    /// What the claim, or the success without layers, depends on.
    pub needs: Vec<String>,
}

/// Layers as a header has them.
#[must_use]
pub fn layers_in_words(layers: &[Vec<Layer>]) -> String {
    let together =
        |layers: &Vec<Layer>| layers.iter().map(|layer| layer.name()).collect::<Vec<_>>().join("+");
    layers.iter().map(together).collect::<Vec<_>>().join(" ")
}

/// All of them, by name.
///
/// # Panics
/// If a header is not one.
#[must_use]
pub fn native_attacks() -> Vec<NativeAttack> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("hostile/native");
    let files = std::fs::read_dir(folder).expect("the attacks").map(|entry| entry.expect("a file").path());
    let mut files: Vec<PathBuf> =
        files.filter(|file| file.extension().is_some_and(|extension| extension == "c")).collect();
    files.sort();
    files.iter().map(|file| parse(file)).collect()
}

/// The program that runs them.
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
            // What only a control group bounds.
            "layers" if value == "none" => {}
            // What only a control group bounds.
            "layers" if value == "none" => {}
            "layers" => attack.layers = any_of(&name, value),
            "user layers" => user_layers = Some(any_of(&name, value)),
            "outcome" => attack.outcome = value.to_owned(),
            "needs" => attack.needs.push(value.to_owned()),
            // Remarks.
            _ => {}
        }
    }
    attack.user_layers = user_layers.unwrap_or_else(|| attack.layers.clone());
    let told = [&attack.attempt, &attack.outcome];
    assert!(told.iter().all(|text| !text.is_empty()), "the header of {name}");
    attack
}

/// Each `a`, or `a+b` where neither holds alone.
fn any_of(attack: &str, layers: &str) -> Vec<Vec<Layer>> {
    let together = |layers: &str| layers.split('+').map(|layer| named(attack, layer)).collect();
    layers.split(' ').map(together).collect()
}

fn named(attack: &str, name: &str) -> Layer {
    let layer = Layer::ALL.into_iter().find(|layer| layer.name() == name);
    layer.unwrap_or_else(|| panic!("{attack}: there is no layer {name:?}"))
}
