//! What the handlers of requests share.

use std::sync::Arc;

use axum::extract::State;

use super::access::Access;
use super::action::Operator;
use super::activity::Activity;
use super::sections::Sections;

pub(super) struct PageState {
    pub(super) access: Arc<Access>,
    pub(super) sections: Sections,
    pub(super) activity: Activity,
    pub(super) operator: Arc<dyn Operator>,
    /// The address of the page, for a person.
    pub(super) address: String,
}

pub(super) type PageStateExtractor = State<Arc<PageState>>;
