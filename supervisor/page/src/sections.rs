//! The sections of the page: what is shown now, as JSON. The sources of the data replace whole sections; every open page
//! gets a section again when it has changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::error::{ActionError, ErrorCode};
use super::section::Section;
use super::viewer::Viewer;

/// Maximum number of open pages. Each has an event stream.
/// Bound: the live page.
pub(super) const PAGES_MAX: usize = 250;
/// Maximum number of open pages of one person who is not an administrator.
/// Bound: the live page.
const PAGES_OF_PERSON_MAX: usize = 10;

/// The current content of one section.
#[derive(Clone, Debug)]
pub(super) struct Content {
    /// The number of the change that made this content. Later changes of any section have larger numbers.
    pub(super) version: u64,
    pub(super) value: Arc<Value>,
    /// The content as one line of JSON.
    pub(super) line: Arc<str>,
}

/// The current content of all sections, and the number of open pages. Clones share both.
#[derive(Clone, Debug)]
pub struct Sections(Arc<SectionsInner>);

#[derive(Debug)]
struct SectionsInner {
    contents: Mutex<BTreeMap<Section, Content>>,
    /// The number of the last change.
    version: watch::Sender<u64>,
    open_pages: watch::Sender<usize>,
    /// The number of open pages of people who may answer questions of others.
    approver_pages: watch::Sender<usize>,
    /// The number of open pages of each person of a service.
    pages_of_persons: Mutex<BTreeMap<String, usize>>,
}

impl Default for Sections {
    fn default() -> Self {
        Self(Arc::new(SectionsInner {
            contents: Mutex::default(),
            version: watch::Sender::new(0),
            open_pages: watch::Sender::new(0),
            approver_pages: watch::Sender::new(0),
            pages_of_persons: Mutex::default(),
        }))
    }
}

impl Sections {
    /// Replaces the content of a section. Does nothing if the content is the same.
    pub fn set(&self, section: Section, value: Value) {
        let line: Arc<str> = value.to_string().into();
        let mut contents = self.0.contents.lock();
        if contents.get(&section).is_some_and(|content| content.line == line) {
            return;
        }
        let version = *self.0.version.borrow() + 1;
        contents.insert(section, Content { version, value: value.into(), line });
        // Announced while the lock is held, so that versions are announced in order.
        self.0.version.send_replace(version);
    }

    /// Returns the content of a section; `null` if it is not known yet.
    #[must_use]
    pub fn value(&self, section: Section) -> Arc<Value> {
        self.0.contents.lock().get(&section).map(|content| content.value.clone()).unwrap_or_default()
    }

    /// Returns the sections that have changed after the change with the number `version`.
    pub(super) fn changed_since(&self, version: u64) -> Vec<(Section, Content)> {
        let contents = self.0.contents.lock();
        let changed = contents.iter().filter(|(_, content)| content.version > version);
        changed.map(|(section, content)| (*section, content.clone())).collect()
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.0.version.subscribe()
    }

    /// Counts a page as open until the returned guard is dropped.
    ///
    /// # Errors
    /// [`ErrorCode::TooMany`] if too many pages are open.
    pub(super) fn open_page(&self, viewer: &Viewer) -> Result<OpenPage, ActionError> {
        let too_many = |most: usize| {
            let message = format!("{most} pages are open, the maximum: close one");
            ActionError::new(ErrorCode::TooMany, message)
        };
        let person = viewer.is_counted().then(|| viewer.name().to_owned());
        let mut pages = self.0.pages_of_persons.lock();
        let own = person.as_ref().and_then(|person| pages.get(person)).copied().unwrap_or(0);
        if own >= PAGES_OF_PERSON_MAX {
            return Err(too_many(PAGES_OF_PERSON_MAX));
        }
        let opened = self.0.open_pages.send_if_modified(|count| {
            let is_free = *count < PAGES_MAX;
            *count += usize::from(is_free);
            is_free
        });
        if !opened {
            return Err(too_many(PAGES_MAX));
        }
        if let Some(person) = &person {
            pages.insert(person.clone(), own + 1);
        }
        let may_answer = viewer.rights().approve;
        if may_answer {
            self.0.approver_pages.send_modify(|count| *count += 1);
        }
        Ok(OpenPage { sections: self.clone(), person, may_answer })
    }

    /// Returns the number of open pages, whose changes can be awaited. The sources of data pause while it is 0.
    #[must_use]
    pub fn open_pages(&self) -> watch::Receiver<usize> {
        self.0.open_pages.subscribe()
    }

    /// Returns the number of open pages of people who may answer questions, whose changes can be awaited.
    #[must_use]
    pub fn approver_pages(&self) -> watch::Receiver<usize> {
        self.0.approver_pages.subscribe()
    }
}

/// An open page. Dropping this value closes it.
#[derive(Debug)]
pub(super) struct OpenPage {
    sections: Sections,
    /// The person whose pages are counted. `None` for an administrator.
    person: Option<String>,
    may_answer: bool,
}

impl Drop for OpenPage {
    fn drop(&mut self) {
        let SectionsInner { open_pages, approver_pages, pages_of_persons, .. } = &*self.sections.0;
        if let Some(person) = &self.person {
            let mut pages = pages_of_persons.lock();
            let left = pages.remove(person).unwrap_or(1) - 1;
            if left > 0 {
                pages.insert(person.clone(), left);
            }
        }
        if self.may_answer {
            approver_pages.send_modify(|count| *count -= 1);
        }
        open_pages.send_modify(|count| *count -= 1);
    }
}

/// Returns the content of a section as the viewer may see it, as one line of JSON. A person sees those items of its lists
/// that have the name of their AI client.
pub(super) fn visible_line(section: Section, content: &Content, viewer: &Viewer) -> Arc<str> {
    if viewer.sees_all(section) {
        return content.line.clone();
    }
    let mut visible = Value::clone(&content.value);
    for (_, member) in visible.as_object_mut().into_iter().flatten() {
        let Some(items) = member.as_array_mut() else { continue };
        match section {
            Section::Savings => *items = items.iter().filter_map(|day| own_day(day, viewer)).collect(),
            _ => items.retain(|item| viewer.may_see_item(section, item)),
        }
    }
    visible.to_string().into()
}

/// Returns one day of the section of savings with the viewer's own AI client alone; `None` if it has none on that day.
fn own_day(day: &Value, viewer: &Viewer) -> Option<Value> {
    let clients = day["clients"].as_array().into_iter().flatten();
    let own: Vec<Value> =
        clients.filter(|client| viewer.may_see_item(Section::Savings, client)).cloned().collect();
    (!own.is_empty()).then(|| json!({"day": day["day"], "clients": own}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_has_changed_if_its_content_is_another() {
        let sections = Sections::default();
        sections.set(Section::Runs, json!({"active": []}));
        let version = *sections.changes().borrow();
        sections.set(Section::Runs, json!({"active": []}));
        assert_eq!(sections.changed_since(version).len(), 0);
        sections.set(Section::Denials, json!({}));
        let changed = sections.changed_since(version);
        assert_eq!(changed.iter().map(|(section, _)| *section).collect::<Vec<_>>(), [Section::Denials]);
        assert_eq!(sections.changed_since(0).len(), 2);
    }

    #[test]
    fn the_number_of_open_pages_is_limited() {
        let sections = Sections::default();
        let all = Viewer::administrator("root");
        let ann = Viewer::person("ann");
        let mut open: Vec<OpenPage> =
            (0..PAGES_OF_PERSON_MAX).map(|_| sections.open_page(&ann).expect("free")).collect();
        assert_eq!(sections.open_page(&ann).expect_err("their own are used").code, ErrorCode::TooMany);
        open.extend((PAGES_OF_PERSON_MAX..PAGES_MAX).map(|_| sections.open_page(&all).expect("free")));
        assert_eq!(sections.open_page(&all).expect_err("full").code, ErrorCode::TooMany);
        open.remove(0);
        drop(sections.open_page(&ann).expect("free again"));
        assert_eq!(*sections.open_pages().borrow(), PAGES_MAX - 1);
        assert_eq!(*sections.approver_pages().borrow(), PAGES_MAX - PAGES_OF_PERSON_MAX);
        open.clear();
        assert!(sections.0.pages_of_persons.lock().is_empty());
    }

    #[test]
    fn a_person_sees_only_their_own_items() {
        let sections = Sections::default();
        let items = json!([{"client": "ann", "n": 1}, {"client": "ben", "n": 2}, {"client": null, "n": 3}]);
        sections.set(Section::Runs, json!({"active": items, "recent": items}));
        sections.set(Section::Savings, json!({"days": [{"day": "d", "clients": items}]}));
        sections.set(Section::Processes, json!({"processes": [{"pid": 1}]}));
        let ann = Viewer::person("ann");
        let lines: Vec<String> = sections
            .changed_since(0)
            .iter()
            .map(|(section, content)| visible_line(*section, content, &ann).to_string())
            .collect();
        let own = r#"[{"client":"ann","n":1}]"#;
        assert_eq!(
            lines,
            [
                r#"{"processes":[]}"#.to_owned(),
                format!(r#"{{"active":{own},"recent":{own}}}"#),
                format!(r#"{{"days":[{{"day":"d","clients":{own}}}]}}"#)
            ]
        );
        let all = Viewer::administrator("root");
        let (section, content) = &sections.changed_since(0)[0];
        assert_eq!(*visible_line(*section, content, &all), *content.line);
    }
}
