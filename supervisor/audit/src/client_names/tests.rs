use std::path::Path;
use std::time::{Duration, SystemTime};

use super::*;
use crate::hash_chain::RecordBody;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn noon(day: u32) -> SystemTime {
    SystemTime::UNIX_EPOCH + DAY * (20_000 + day) + DAY / 2
}

fn call_of(name: &str) -> RecordBody {
    RecordBody::new("call").text("client", name).text("server", name).number("ms", "1.50")
}

fn written(names: &mut ClientNames, name: &str, day: u32) -> String {
    names.replace_in(&call_of(name), noon(day)).expect("written").as_object()
}

fn read(directory: &Path, line: &str) -> String {
    NamesById::read(directory).expect("readable").put_into(line.to_owned())
}

#[test]
fn a_record_has_an_id_until_somebody_reads_it_and_none_after_the_name_was_erased() {
    let place = tempfile::tempdir().expect("a directory");
    let mut names = ClientNames::new(place.path().to_owned(), 7);
    let (ada, bob) = (written(&mut names, "ada \"é", 0), written(&mut names, "bob", 0));
    assert!(ada.starts_with("{\"event\":\"call\",\"client\":\"name:"), "{ada}");
    assert!(ada.ends_with(",\"server\":\"ada \\\"é\",\"ms\":1.50}"), "only the members with names: {ada}");
    assert_eq!(written(&mut names, "ada \"é", 29), ada, "one id for one name");
    assert_eq!(read(place.path(), &ada), call_of("ada \"é").as_object());

    erase(place.path(), 8, &["ada \"é".into()]).expect("written");
    assert_eq!(read(place.path(), &ada), call_of("ada \"é").as_object(), "control: of another account");
    erase(place.path(), 7, &["ada \"é".into()]).expect("written");
    assert_eq!(read(place.path(), &ada), ada);
    assert_eq!(read(place.path(), &bob), call_of("bob").as_object());
    let again = written(&mut names, "ada \"é", 0);
    assert_ne!(again, ada, "who comes back is somebody else");
    assert_eq!(read(place.path(), &ada), ada);
}

#[test]
fn processes_and_accounts_share_the_file() {
    let place = tempfile::tempdir().expect("a directory");
    let [mut one, mut other, mut foreign] =
        [7, 7, 8].map(|uid| ClientNames::new(place.path().to_owned(), uid));
    let id = written(&mut one, "ada", 0);
    assert_eq!(written(&mut other, "ada", 0), id);
    assert_ne!(written(&mut foreign, "ada", 0), id, "accounts do not share ids");
    erase(place.path(), 7, &["ada".into()]).expect("written");
    assert_ne!(written(&mut one, "ada", 0), id, "a process that knew the id");
    assert_eq!(written(&mut one, "ada", 0), written(&mut other, "ada", 0));
}

#[test]
fn a_line_that_was_written_in_part_stays_alone() {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::write(place.path().join("names.jsonl"), "{\"key\":\"00").expect("written");
    let mut names = ClientNames::new(place.path().to_owned(), 7);
    let line = written(&mut names, "ada", 0);
    assert_eq!(read(place.path(), &line), call_of("ada").as_object());
}

#[test]
fn the_file_cannot_give_a_record_another_name() {
    let place = tempfile::tempdir().expect("a directory");
    let mut names = ClientNames::new(place.path().to_owned(), 7);
    let line = written(&mut names, "ada", 0);
    let file = place.path().join("names.jsonl");
    let text = std::fs::read_to_string(&file).expect("readable");
    std::fs::write(&file, text.replace("ada", "bob")).expect("written");
    assert_eq!(read(place.path(), &line), line);
}

#[test]
fn an_id_is_used_for_a_month_and_its_name_expires_with_its_records() {
    let place = tempfile::tempdir().expect("a directory");
    let mut names = ClientNames::new(place.path().to_owned(), 7);
    let (first, next) = (written(&mut names, "ada", 0), written(&mut names, "ada", 30));
    assert_ne!(first, next);
    let segment = |day| std::fs::write(place.path().join(crate::SegmentName::new(noon(day)).as_str()), "");
    segment(31).expect("written");
    expire(place.path()).expect("written");
    assert_eq!(read(place.path(), &first), call_of("ada").as_object(), "control: a record may have it");
    std::fs::remove_dir_all(place.path()).and_then(|()| std::fs::create_dir(place.path())).expect("empty");
    let mut names = ClientNames::new(place.path().to_owned(), 7);
    let (first, next) = (written(&mut names, "ada", 0), written(&mut names, "ada", 30));
    segment(32).expect("written");
    expire(place.path()).expect("written");
    assert_eq!(read(place.path(), &first), first);
    assert_eq!(read(place.path(), &next), call_of("ada").as_object());
}

#[test]
fn names_are_bounded() {
    let place = tempfile::tempdir().expect("a directory");
    let line = |at: usize| {
        serde_json::to_string(&NameLine::new(&format!("n{at}"), 8, "2026-01-31".into()).expect("a key"))
    };
    let lines: Vec<String> = (0..NAMES_MAX).map(|at| line(at).expect("JSON")).collect();
    std::fs::write(place.path().join("names.jsonl"), lines.join("\n")).expect("written");
    let mut names = ClientNames::new(place.path().to_owned(), 7);
    assert!(written(&mut names, "ada", 0).contains("\"client\":\"[beyond 16,384 names]\""));
    erase(place.path(), 8, &["n1".into()]).expect("written");
    assert!(written(&mut names, "ada", 0).contains("\"client\":\"name:"), "control: one less");
}
