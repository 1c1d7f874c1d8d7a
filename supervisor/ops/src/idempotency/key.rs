//! The key itself: the only place that decides whether a client's text is an idempotency key. Knows no transport.

use crate::errors::invalid;
use std::fmt;
use uuid::Uuid;
use vm_system_protocol::control::OpError;

/// Longest key (bytes): it is part of a row, and of an index.
const KEY_BYTES: usize = 255;

/// A client's name for a request: for 24 h the same key from the same owner gets the first response again, also after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// The key that a client sent.
    pub fn parse(text: &str) -> Result<Self, OpError> {
        // No control characters: keys are shown in messages and logs.
        let is_key = (1..=KEY_BYTES).contains(&text.len()) && !text.chars().any(char::is_control);
        if is_key { Ok(Self(text.to_owned())) } else { Err(Self::refusal()) }
    }

    /// The error of a request whose key is no key, or that has several.
    pub fn refusal() -> OpError {
        invalid(format!("an idempotency key has 1 to {KEY_BYTES} bytes and no control characters"))
            .with_hint("send one key, or none")
    }

    /// A key that no other request has.
    pub fn unique() -> Self {
        Self(Uuid::new_v4().to_string())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_has_a_length_and_no_control_characters() {
        let longest = "k".repeat(KEY_BYTES);
        for key in ["k", "the key", "é", &longest] {
            assert_eq!(IdempotencyKey::parse(key).map(|key| key.to_string()), Ok(key.to_owned()));
        }
        for refused in ["", &format!("{longest}k"), "a\nb", "a\tb", "\u{85}"] {
            assert_eq!(IdempotencyKey::parse(refused), Err(IdempotencyKey::refusal()), "{refused:?}");
        }
    }

    #[test]
    fn unique_keys_differ() {
        assert_ne!(IdempotencyKey::unique(), IdempotencyKey::unique());
    }
}
