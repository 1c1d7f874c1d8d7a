//! What is asked before something is deleted: the first call answers a random token, the second one with it deletes.
//! A token is for one thing of one client, counts once and for a while.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Tokens of one owner that may wait; the owner's oldest make room.
const TOKENS_OF_AN_OWNER: usize = 64;
/// Tokens of all owners; the oldest make room.
const TOKENS: usize = 8_192;
/// How long a token counts.
const LIFE: Duration = Duration::from_mins(10);

/// The tokens that were given out.
#[derive(Debug, Default)]
pub(super) struct Confirmations(Mutex<VecDeque<Given>>);

#[derive(Debug)]
struct Given {
    token: String,
    about: String,
    at: Instant,
}

impl Confirmations {
    /// A new token. `about` names client and thing; its first line is the owner.
    pub(super) fn give(&self, about: &str) -> String {
        let token = Uuid::new_v4().simple().to_string();
        let mut given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        given.retain(|one| one.at.elapsed() < LIFE);
        let mut same_owner = given.iter().enumerate().filter(|(_, one)| owner(&one.about) == owner(about));
        let oldest = same_owner.next().map(|(place, _)| place);
        if let Some(oldest) = oldest.filter(|_| same_owner.count() + 1 >= TOKENS_OF_AN_OWNER) {
            given.remove(oldest);
        } else if given.len() >= TOKENS {
            given.pop_front();
        }
        given.push_back(Given { token: token.clone(), about: about.to_owned(), at: Instant::now() });
        token
    }

    /// Whether this token was given for that, and takes it back.
    pub(super) fn take(&self, about: &str, token: &str) -> bool {
        let mut given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        given.retain(|one| one.at.elapsed() < LIFE);
        let found = given.iter().position(|one| one.token == token && one.about == about);
        found.is_some_and(|place| given.remove(place).is_some())
    }
}

fn owner(about: &str) -> &str {
    about.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_counts_once_and_for_one_thing_only() {
        let tokens = Confirmations::default();
        let token = tokens.give("a execution 1");
        assert!(!tokens.take("a execution 2", &token));
        assert!(!tokens.take("b execution 1", &token));
        assert!(!tokens.take("a execution 1", "delete-1-0"));
        assert!(tokens.take("a execution 1", &token));
        assert!(!tokens.take("a execution 1", &token));
    }

    #[test]
    fn the_oldest_make_room_of_the_same_owner_and_not_of_others() {
        let tokens = Confirmations::default();
        let other = tokens.give("b\nx");
        let first = tokens.give("a\nx");
        let second = tokens.give("a\nx");
        for _ in 0..TOKENS_OF_AN_OWNER - 1 {
            tokens.give("a\ny");
        }
        assert!(!tokens.take("a\nx", &first));
        assert!(tokens.take("a\nx", &second));
        for _ in 0..TOKENS {
            tokens.give("a\ny");
        }
        assert!(tokens.take("b\nx", &other));
    }
}
