//! The hostile programs of the endurance suites: those of `tests/hostile` whose header has the key `endurance`.

use lockhouse_tests::{Attack, LANGUAGES};

/// A hostile program, and its language.
pub(super) struct Hostile {
    pub(super) language: &'static str,
    pub(super) attack: Attack,
}

/// Returns the hostile programs. The languages alternate, so that any two consecutive programs have different languages.
pub(super) fn all() -> Vec<Hostile> {
    let [python, typescript] = LANGUAGES.map(|language| {
        let attacks = Attack::all(language).into_iter().filter(|attack| attack.endurance.is_some());
        attacks.map(move |attack| Hostile { language, attack }).collect::<Vec<_>>()
    });
    assert_eq!(python.len(), typescript.len(), "as many programs in each language");
    python.into_iter().zip(typescript).flat_map(|(python, typescript)| [python, typescript]).collect()
}
