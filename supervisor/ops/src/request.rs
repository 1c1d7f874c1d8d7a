//! The requests that an API passes to the verbs, and the trait [`VerbHandler`]. Knows no transport.

use crate::idempotency::IdempotencyKey;
use crate::ops::now;
use tokio_util::sync::CancellationToken;
use vm_system_protocol::control::{ErrorCode, Op, OpError, Reply};
use vm_system_protocol::time::Timestamp;
use vm_system_record::{Owner, Scope};
use vm_system_runtime::Follower;
use vm_system_runtime::client_memory::ReplyMemory;
use vm_system_runtime::shares::Holder;
use vm_system_store::BoxFuture;

/// Who makes a request, and through which API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The principal; new rows belong to it.
    pub owner: Owner,
    /// Sees and may do everything: root, the user that the supervisor runs as, and tokens of administrators.
    pub admin: bool,
    /// Name of the API, for the audit log.
    pub api: &'static str,
}

impl Caller {
    pub(super) fn scope(&self) -> Scope {
        if self.admin { Scope::All } else { Scope::Owner(self.owner.clone()) }
    }

    /// The rows of a list: those that the caller may see, or of one owner: only administrators may name one.
    pub(super) fn scope_of(&self, owner: Option<&str>) -> Result<Scope, OpError> {
        let Some(owner) = owner else { return Ok(self.scope()) };
        if self.admin {
            return Ok(Scope::Owner(Owner::new(owner)));
        }
        Err(OpError::new(
            ErrorCode::NotPermitted,
            "only an administrator may list what belongs to a named owner",
        )
        .with_hint("without an owner the list has all that is yours"))
    }

    /// Names are resolved among the caller's own rows, even if it may see others.
    pub(super) fn own(&self) -> Scope {
        Scope::Owner(self.owner.clone())
    }

    /// Has the shares of what the caller uses.
    pub fn holder(&self) -> Holder {
        Holder::new(self.owner.clone(), self.admin)
    }

    /// The owner of an object, as replies have it: for administrators only. Others see nothing that is not theirs.
    pub(super) fn shown_owner(&self, owner: &Owner) -> Option<String> {
        self.admin.then(|| owner.to_string())
    }

    pub(super) fn may_see(&self, owner: &Owner) -> bool {
        self.admin || self.owner == *owner
    }
}

/// One verb with its caller.
#[derive(Debug)]
pub struct VerbRequest {
    /// Who makes the request.
    pub caller: Caller,
    /// The client's name for the request, if it has one.
    pub idempotency_key: Option<IdempotencyKey>,
    /// The verb.
    pub op: Op,
    /// Receives the events of `ExecStart` and `ExecEvents` requests that follow, in order and without a gap; the response then
    /// has none. When the receiver is closed, following ends and the execution continues.
    pub events: Option<Follower>,
    /// The memory of the response. Verbs whose response may be large reserve it before they read.
    pub memory: ReplyMemory,
    /// The presence of the client.
    pub presence: ClientPresence,
}

/// The presence of a request's client, and what becomes of its execution if it goes. The default is a client that stays.
#[derive(Debug, Clone, Default)]
pub struct ClientPresence {
    /// An execution in a session for which the request waits is cancelled if the client goes and nobody else waits for it.
    pub cancel_on_disconnect: bool,
    /// Cancelled when the client has gone. One that the supervisor has disconnected has not: it may come back.
    pub gone: CancellationToken,
    /// When the request began to arrive, if that was noted before the verb begins: its body may take any time.
    pub arrived: Option<Timestamp>,
    /// Cancelled when the client can send no further request on its connection.
    pub finished: CancellationToken,
}

impl ClientPresence {
    /// The client of a request of which the first part has arrived.
    pub fn arriving() -> Self {
        Self { arrived: Some(now()), ..Self::default() }
    }
}

/// A request that an API refused before it was a verb.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiRefusal {
    /// The principal; absent if it is not known.
    pub owner: Option<Owner>,
    /// Name of the API.
    pub api: &'static str,
    /// Method and path, or the name of a verb.
    pub what: String,
    /// Address of the peer, if the principal is not known.
    pub from: String,
    /// The error's code.
    pub code: &'static str,
}

/// Handles verbs: [`Ops`](super::Ops), or a fake in tests.
pub trait VerbHandler: Send + Sync + 'static {
    /// Runs one verb to its end. The future must not be dropped before, not even when the client disconnects.
    fn handle(&self, request: VerbRequest) -> BoxFuture<'_, Result<Reply, OpError>>;

    /// Records a refusal; the handler decides how much of it is stored.
    fn refused(&self, refusal: ApiRefusal) -> BoxFuture<'_, ()> {
        let _ = refusal;
        Box::pin(std::future::ready(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_administrator_names_an_owner() {
        let owner = Owner::new("alice");
        for api in ["control", "rest", "embedded"] {
            let user = Caller { owner: owner.clone(), admin: false, api };
            assert_eq!(user.scope_of(None), Ok(Scope::Owner(owner.clone())));
            for named in ["alice", "bob"] {
                let refused = user.scope_of(Some(named)).map_err(|error| error.code);
                assert_eq!(refused, Err(ErrorCode::NotPermitted), "{named}");
            }
            let administrator = Caller { admin: true, ..user };
            assert_eq!(administrator.scope_of(None), Ok(Scope::All));
            assert_eq!(administrator.scope_of(Some("bob")), Ok(Scope::Owner(Owner::new("bob"))));
        }
    }
}
