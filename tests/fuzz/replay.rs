//! What the tests of the fuzz targets share: they pass the seeds of a target, and small changes of them, to the function that the fuzzer calls.

use std::collections::BTreeSet;

/// Maximum number of places of a seed at which it is changed.
const PLACES_MAX: usize = 32;
/// What a byte is combined with, by exclusive or. All bits change the kind of what follows, and single bits a length, a letter or a sign.
const CHANGES: [u8; 4] = [0x01, 0x20, 0x80, 0xff];

/// Passes each seed to the function of its target, then without the bytes from one place on, without the byte there, and with another byte.
/// Returns the kinds of results that the inputs produced.
pub(crate) fn replay(seeds: &[Vec<u8>], run: fn(&[u8]) -> BTreeSet<String>) -> BTreeSet<String> {
    assert!(!seeds.is_empty(), "the target has no seeds");
    let mut reached = BTreeSet::new();
    for seed in seeds {
        reached.extend(run(seed));
        for place in (0..seed.len()).step_by(seed.len().div_ceil(PLACES_MAX).max(1)) {
            let (head, tail) = seed.split_at(place);
            reached.extend(run(head));
            reached.extend(run(&[head, &tail[1..]].concat()));
            for change in CHANGES {
                let mut changed = seed.clone();
                changed[place] ^= change;
                reached.extend(run(&changed));
            }
        }
    }
    reached
}

/// Asserts that each of these kinds of results was reached. If one is missing, a change of the code needs a new seed in `fuzz/src/seeds.rs`.
pub(crate) fn assert_reaches(reached: &BTreeSet<String>, expected: &[&str]) {
    let missing: Vec<_> = expected.iter().filter(|kind| !reached.contains(**kind)).collect();
    assert!(missing.is_empty(), "not reached any more: {missing:?} in {reached:?}");
}
