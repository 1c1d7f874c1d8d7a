//! What is asked before something is deleted: the first call answers a random token, the second one with it deletes.
//! A token is for one thing of one client, counts once and for a while.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use uuid::Uuid;
use vm_system_record::Owner;

/// Tokens of one owner that may wait; the owner's oldest make room.
const TOKENS_OF_AN_OWNER: usize = 64;
/// Tokens of all owners; the oldest make room.
const TOKENS: usize = 8_192;
/// How long a token counts.
const LIFE: Duration = Duration::from_mins(10);

/// The tokens that were given out.
#[derive(Debug, Default)]
pub(super) struct Confirmations(Mutex<VecDeque<Given>>);

/// One thing of one client's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct About {
    /// Whose tokens count together.
    pub(super) owner: Option<Owner>,
    /// Which of that owner's clients.
    pub(super) client: String,
    /// What kind of thing.
    pub(super) kind: &'static str,
    /// Its id: a name may mean another thing tomorrow.
    pub(super) id: String,
}

/// What a token is worth.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Worth {
    /// It was given for this very thing, and is used up now.
    Counts,
    /// It was given to this client for another thing of the kind, and stays good for that.
    ForAnother,
    /// Nothing.
    Nothing,
}

#[derive(Debug)]
struct Given {
    token: String,
    about: About,
    at: Instant,
}

impl Confirmations {
    /// A new token.
    pub(super) fn give(&self, about: About) -> String {
        let token = Uuid::new_v4().simple().to_string();
        let mut given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        given.retain(|one| one.at.elapsed() < LIFE);
        let mut same_owner = given.iter().enumerate().filter(|(_, one)| one.about.owner == about.owner);
        let oldest = same_owner.next().map(|(place, _)| place);
        if let Some(oldest) = oldest.filter(|_| same_owner.count() + 1 >= TOKENS_OF_AN_OWNER) {
            given.remove(oldest);
        } else if given.len() >= TOKENS {
            given.pop_front();
        }
        given.push_back(Given { token: token.clone(), about, at: Instant::now() });
        token
    }

    /// What this token is worth for that thing.
    pub(super) fn take(&self, about: &About, token: &str) -> Worth {
        let mut given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        given.retain(|one| one.at.elapsed() < LIFE);
        let known = given.iter().enumerate().find(|(_, one)| one.token == token);
        match known.map(|(place, one)| (place, &one.about)) {
            Some((place, whole)) if whole == about => {
                given.remove(place);
                Worth::Counts
            }
            Some((_, other))
                if (&other.owner, &other.client, other.kind) == (&about.owner, &about.client, about.kind) =>
            {
                Worth::ForAnother
            }
            _ => Worth::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(owner: &str, client: &str, id: &str) -> About {
        About {
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
        assert_eq!(tokens.take(&about("a", "one", "2"), &token), Worth::ForAnother);
        assert_eq!(tokens.take(&about("a", "two", "1"), &token), Worth::Nothing);
        assert_eq!(tokens.take(&about("b", "one", "1"), &token), Worth::Nothing);
        assert_eq!(tokens.take(&About { kind: "program", ..mine.clone() }, &token), Worth::Nothing);
        assert_eq!(tokens.take(&mine, "delete-1-0"), Worth::Nothing);
        assert_eq!(tokens.take(&mine, &token), Worth::Counts);
        assert_eq!(tokens.take(&mine, &token), Worth::Nothing);
    }

    #[test]
    fn the_oldest_make_room_of_the_same_owner_and_not_of_others() {
        let tokens = Confirmations::default();
        let other = tokens.give(about("b", "", "x"));
        let first = tokens.give(about("a", "", "x"));
        let second = tokens.give(about("a", "", "x"));
        for _ in 0..TOKENS_OF_AN_OWNER - 1 {
            tokens.give(about("a", "", "y"));
        }
        assert_eq!(tokens.take(&about("a", "", "x"), &first), Worth::Nothing);
        assert_eq!(tokens.take(&about("a", "", "x"), &second), Worth::Counts);
        for _ in 0..TOKENS {
            tokens.give(about("a", "", "y"));
        }
        assert_eq!(tokens.take(&about("b", "", "x"), &other), Worth::Counts);
    }
}
