//! Confirmation of deletions: the first call returns a random token, the second one with the token deletes.
//! A token is valid for one thing of one client, once, and for a limited time.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use uuid::Uuid;
use vm_system_record::Owner;

/// Tokens of one owner at a time; above that the owner's oldest are evicted.
const TOKENS_OF_AN_OWNER: usize = 64;
/// Tokens of all owners at a time; above that the oldest are evicted.
const TOKENS: usize = 8_192;
/// How long a token counts.
const LIFE: Duration = Duration::from_mins(10);

/// The issued tokens.
#[derive(Debug, Default)]
pub(super) struct Confirmations(Mutex<VecDeque<IssuedToken>>);

/// The thing that a token confirms the deletion of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConfirmationSubject {
    /// The tokens of one owner are counted together.
    pub(super) owner: Option<Owner>,
    /// Key of the client.
    pub(super) client: String,
    /// The kind of thing, as a word.
    pub(super) kind: &'static str,
    /// Its id: a name may mean another thing tomorrow.
    pub(super) id: String,
}

/// The result of the check of a token.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TokenCheck {
    /// It was issued for this thing, and is used up now.
    Valid,
    /// It was issued to this client for another thing of the kind, and stays valid for that.
    ForAnother,
    /// It was not issued to this client, or is no longer valid.
    Unknown,
}

#[derive(Debug)]
struct IssuedToken {
    token: String,
    about: ConfirmationSubject,
    at: Instant,
}

impl Confirmations {
    /// A new token.
    pub(super) fn give(&self, about: ConfirmationSubject) -> String {
        let token = Uuid::new_v4().simple().to_string();
        let mut given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        given.retain(|one| one.at.elapsed() < LIFE);
        let mut same_owner = given.iter().enumerate().filter(|(_, one)| one.about.owner == about.owner);
        let oldest = same_owner.next().map(|(index, _)| index);
        if let Some(oldest) = oldest.filter(|_| same_owner.count() + 1 >= TOKENS_OF_AN_OWNER) {
            given.remove(oldest);
        } else if given.len() >= TOKENS {
            given.pop_front();
        }
        given.push_back(IssuedToken { token: token.clone(), about, at: Instant::now() });
        token
    }

    /// What this token is worth for that thing.
    pub(super) fn take(&self, about: &ConfirmationSubject, token: &str) -> TokenCheck {
        let mut given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        given.retain(|one| one.at.elapsed() < LIFE);
        let known = given.iter().enumerate().find(|(_, one)| one.token == token);
        match known.map(|(place, one)| (place, &one.about)) {
            Some((place, whole)) if whole == about => {
                given.remove(place);
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
    fn a_token_counts_once_and_for_one_thing_only() {
        let tokens = Confirmations::default();
        let mine = about("a", "one", "1");
        let token = tokens.give(mine.clone());
        assert_eq!(tokens.take(&about("a", "one", "2"), &token), TokenCheck::ForAnother);
        assert_eq!(tokens.take(&about("a", "two", "1"), &token), TokenCheck::Unknown);
        assert_eq!(tokens.take(&about("b", "one", "1"), &token), TokenCheck::Unknown);
        assert_eq!(
            tokens.take(&ConfirmationSubject { kind: "program", ..mine.clone() }, &token),
            TokenCheck::Unknown
        );
        assert_eq!(tokens.take(&mine, "delete-1-0"), TokenCheck::Unknown);
        assert_eq!(tokens.take(&mine, &token), TokenCheck::Valid);
        assert_eq!(tokens.take(&mine, &token), TokenCheck::Unknown);
    }

    #[test]
    fn oldest_token_of_the_same_owner_is_evicted_and_none_of_others() {
        let tokens = Confirmations::default();
        let other = tokens.give(about("b", "", "x"));
        let first = tokens.give(about("a", "", "x"));
        let second = tokens.give(about("a", "", "x"));
        for _ in 0..TOKENS_OF_AN_OWNER - 1 {
            tokens.give(about("a", "", "y"));
        }
        assert_eq!(tokens.take(&about("a", "", "x"), &first), TokenCheck::Unknown);
        assert_eq!(tokens.take(&about("a", "", "x"), &second), TokenCheck::Valid);
        for _ in 0..TOKENS {
            tokens.give(about("a", "", "y"));
        }
        assert_eq!(tokens.take(&about("b", "", "x"), &other), TokenCheck::Valid);
    }
}
