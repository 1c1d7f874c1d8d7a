//! Confirmation of deletions: the first call returns a random token, the second one with the token deletes.
//! A token is valid once, for one object of one client, and for a limited time.

use super::per_owner::{EntriesPerOwner, OwnedEntry};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use uuid::Uuid;
use vm_system_record::Owner;

/// Tokens of one owner at a time; above that the owner's oldest are evicted.
const TOKENS_OF_AN_OWNER: usize = 64;
/// Tokens of all owners at a time; above that the oldest are evicted.
const TOKENS: usize = 8_192;
/// How long a token is valid.
const LIFE: Duration = Duration::from_mins(10);

/// The issued tokens.
#[derive(Debug)]
pub(super) struct Confirmations(Mutex<EntriesPerOwner<IssuedToken>>);

impl Default for Confirmations {
    fn default() -> Self {
        Self(Mutex::new(EntriesPerOwner::new(TOKENS_OF_AN_OWNER, TOKENS)))
    }
}

/// The object whose deletion a token confirms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConfirmationSubject {
    /// The owner whose tokens are counted together.
    pub(super) owner: Option<Owner>,
    /// [`McpClient::key`](super::McpClient::key) of the client.
    pub(super) client: String,
    /// Kind of object: `program` or `execution`.
    pub(super) kind: &'static str,
    /// Id, not name: a name may refer to another object later.
    pub(super) id: String,
}

/// The result of the check of a token.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TokenCheck {
    /// The token was issued for this object; it cannot be used again.
    Valid,
    /// The token was issued to this client for another object of the same kind, and stays valid for that one.
    ForAnother,
    /// The token was not issued to this client, or is no longer valid.
    Unknown,
}

#[derive(Debug)]
struct IssuedToken {
    token: String,
    about: ConfirmationSubject,
    at: Instant,
}

impl OwnedEntry for IssuedToken {
    fn owner(&self) -> Option<&Owner> {
        self.about.owner.as_ref()
    }
}

impl Confirmations {
    /// Issues a token.
    pub(super) fn issue(&self, about: ConfirmationSubject) -> String {
        let token = Uuid::new_v4().simple().to_string();
        let mut issued = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        issued.retain(|one| one.at.elapsed() < LIFE);
        issued.push(IssuedToken { token: token.clone(), about, at: Instant::now() });
        token
    }

    /// Checks a token for an object; a valid one is used up.
    pub(super) fn check(&self, about: &ConfirmationSubject, token: &str) -> TokenCheck {
        let mut issued = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        issued.retain(|one| one.at.elapsed() < LIFE);
        let found = issued.iter().enumerate().find(|(_, one)| one.token == token);
        match found.map(|(index, one)| (index, &one.about)) {
            Some((index, same)) if same == about => {
                issued.remove(index);
                TokenCheck::Valid
            }
            Some((_, other))
                if (&other.owner, &other.client, other.kind) == (&about.owner, &about.client, about.kind) =>
            {
                TokenCheck::ForAnother
            }
            _ => TokenCheck::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(owner: &str, client: &str, id: &str) -> ConfirmationSubject {
        ConfirmationSubject {
            owner: Some(Owner::new(owner)),
            client: client.to_owned(),
            kind: "execution",
            id: id.to_owned(),
        }
    }

    #[test]
    fn a_token_is_valid_once_and_for_one_object_only() {
        let tokens = Confirmations::default();
        let mine = about("a", "one", "1");
        let token = tokens.issue(mine.clone());
        assert_eq!(tokens.check(&about("a", "one", "2"), &token), TokenCheck::ForAnother);
        assert_eq!(tokens.check(&about("a", "two", "1"), &token), TokenCheck::Unknown);
        assert_eq!(tokens.check(&about("b", "one", "1"), &token), TokenCheck::Unknown);
        assert_eq!(
            tokens.check(&ConfirmationSubject { kind: "program", ..mine.clone() }, &token),
            TokenCheck::Unknown
        );
        assert_eq!(tokens.check(&mine, "delete-1-0"), TokenCheck::Unknown);
        assert_eq!(tokens.check(&mine, &token), TokenCheck::Valid);
        assert_eq!(tokens.check(&mine, &token), TokenCheck::Unknown);
    }

    #[test]
    fn oldest_token_of_the_same_owner_is_evicted_and_no_others() {
        let tokens = Confirmations::default();
        let other = tokens.issue(about("b", "", "x"));
        let first = tokens.issue(about("a", "", "x"));
        let second = tokens.issue(about("a", "", "x"));
        for _ in 0..TOKENS_OF_AN_OWNER - 1 {
            tokens.issue(about("a", "", "y"));
        }
        assert_eq!(tokens.check(&about("a", "", "x"), &first), TokenCheck::Unknown);
        assert_eq!(tokens.check(&about("a", "", "x"), &second), TokenCheck::Valid);
        for _ in 0..TOKENS {
            tokens.issue(about("a", "", "y"));
        }
        assert_eq!(tokens.check(&about("b", "", "x"), &other), TokenCheck::Valid);
    }
}
