//! The requests with effects that this engine has begun. A request that arrives again is recognised by its id, and is not
//! carried out again.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use lockhouse_messages::{Owner, RequestId};
use lockhouse_protocol::{ExecutionId, ResultHandle};

/// Maximum number of requests with effects that are remembered, of all owners together (`REQUESTS_MAX`) and of each
/// owner (`REQUESTS_PER_OWNER_MAX`). Above it, the oldest is forgotten.
/// Bound: engines and fronts.
const REQUESTS_MAX: usize = 8_192;
const REQUESTS_PER_OWNER_MAX: usize = 1_024;

/// The digest of what a request asks for.
pub(crate) type RequestDigest = [u8; 32];

/// The requests that are remembered. Each owner has its own ids.
#[derive(Debug)]
pub(super) struct KnownRequests {
    requests: HashMap<(Owner, RequestId), KnownRequest>,
    /// The keys of `requests`, in the order in which they were added.
    order: VecDeque<(Owner, RequestId)>,
    /// How long a request is remembered.
    lifetime: Duration,
}

/// A request that was begun.
#[derive(Clone, Debug)]
pub(super) struct KnownRequest {
    begun: Instant,
    /// What the request asked for; `None` if its front chose the id, which is then never used for another request.
    digest: Option<RequestDigest>,
    /// The run that the request started; `None` if it started none.
    pub(super) execution: Option<ExecutionId>,
    /// The handle of the run; `None` if its answer is not stored.
    pub(super) handle: Option<ResultHandle>,
}

/// What is known of a request that arrives.
#[derive(Debug)]
pub(super) enum Recognition {
    /// It was not begun before. It is remembered from now on.
    New,
    Repeated(KnownRequest),
    /// Its id was used for another request.
    Conflict,
}

impl KnownRequests {
    pub(super) fn new(lifetime: Duration) -> Self {
        Self { requests: HashMap::new(), order: VecDeque::new(), lifetime }
    }

    /// Looks up a request, and remembers it if it is new.
    pub(super) fn recognise(
        &mut self,
        owner: Owner,
        id: RequestId,
        digest: Option<RequestDigest>,
        now: Instant,
    ) -> Recognition {
        self.remove_old(now);
        if let Some(known) = self.requests.get(&(owner, id)) {
            let is_same = known.digest == digest;
            return if is_same { Recognition::Repeated(known.clone()) } else { Recognition::Conflict };
        }
        self.make_room(owner);
        let known = KnownRequest { begun: now, digest, execution: None, handle: None };
        self.requests.insert((owner, id), known);
        self.order.push_back((owner, id));
        Recognition::New
    }

    /// Records the run that a request started.
    pub(super) fn set_run(
        &mut self,
        owner: Owner,
        id: RequestId,
        execution: ExecutionId,
        handle: Option<ResultHandle>,
    ) {
        if let Some(known) = self.requests.get_mut(&(owner, id)) {
            (known.execution, known.handle) = (Some(execution), handle);
        }
    }

    pub(super) fn find(&self, owner: Owner, id: RequestId) -> Option<&KnownRequest> {
        self.requests.get(&(owner, id))
    }

    /// Forgets the requests of an owner that cannot come back.
    pub(super) fn forget(&mut self, owner: Owner) {
        self.order.retain(|(other, _)| *other != owner);
        self.requests.retain(|(other, _), _| *other != owner);
    }

    fn remove_old(&mut self, now: Instant) {
        while let Some(oldest) = self.order.front()
            && let Some(known) = self.requests.get(oldest)
            && now.saturating_duration_since(known.begun) >= self.lifetime
        {
            self.remove_at(0);
        }
    }

    /// Forgets the oldest request if there are too many, and otherwise that of the owner if it has too many.
    fn make_room(&mut self, owner: Owner) {
        if self.order.len() >= REQUESTS_MAX {
            self.remove_at(0);
            return;
        }
        let mut own = self.order.iter().enumerate().rev().filter(|(_, (other, _))| *other == owner);
        if let Some((oldest, _)) = own.nth(REQUESTS_PER_OWNER_MAX - 1) {
            self.remove_at(oldest);
        }
    }

    /// Forgets the request at this place of `order`.
    fn remove_at(&mut self, place: usize) {
        if let Some(key) = self.order.remove(place) {
            self.requests.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockhouse_base::principal::owner_of_name;

    const LIFETIME: Duration = Duration::from_secs(60);

    fn id(number: u32) -> RequestId {
        RequestId::parse(&format!("{number:032x}")).expect("an id")
    }

    #[test]
    fn a_repeated_request_is_recognised_only_for_its_owner() {
        let mut known = KnownRequests::new(LIFETIME);
        let (one, other, now) = (owner_of_name("a"), owner_of_name("b"), Instant::now());
        let mut recognise = |owner, digest| known.recognise(owner, id(1), digest, now);
        assert!(matches!(recognise(one, Some([1; 32])), Recognition::New));
        assert!(matches!(recognise(one, Some([1; 32])), Recognition::Repeated(_)));
        assert!(matches!(recognise(one, Some([2; 32])), Recognition::Conflict));
        assert!(matches!(recognise(other, Some([2; 32])), Recognition::New));
        known.forget(one);
        assert!(matches!(known.recognise(one, id(1), None, now), Recognition::New));
        assert!(matches!(known.recognise(other, id(1), Some([2; 32]), now), Recognition::Repeated(_)));
        let later = now + LIFETIME;
        assert!(matches!(known.recognise(other, id(1), Some([3; 32]), later), Recognition::New));
    }

    #[test]
    fn the_number_of_requests_is_bounded() {
        let mut known = KnownRequests::new(LIFETIME);
        let now = Instant::now();
        let quiet = owner_of_name("quiet");
        known.recognise(quiet, id(0), None, now);
        let busy = owner_of_name("busy");
        for number in 0..3 * REQUESTS_PER_OWNER_MAX as u32 {
            known.recognise(busy, id(number), None, now);
        }
        assert_eq!(
            (known.requests.len(), known.order.len()),
            (1 + REQUESTS_PER_OWNER_MAX, 1 + REQUESTS_PER_OWNER_MAX)
        );
        assert!(known.find(quiet, id(0)).is_some(), "one client does not displace another's");
        for number in 0..2 * REQUESTS_MAX as u32 {
            known.recognise(owner_of_name(&number.to_string()), id(number), None, now);
        }
        assert_eq!((known.requests.len(), known.order.len()), (REQUESTS_MAX, REQUESTS_MAX));
    }
}
