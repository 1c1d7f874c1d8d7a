//! Requests that a session's owner task keeps until the machine can take them, and their bounds. Does not know what a request is.

use std::collections::VecDeque;

/// Requests that may wait while the session is busy briefly: for the guard copy, about a millisecond, or for the end of a cancelled
/// execution.
const EARLY_REQUESTS: usize = 16;

/// Answers that may wait until an adopted worker has repeated its question. One is accepted; the machine refuses further ones as busy.
/// Each may be as large as a request.
const EARLY_ANSWERS: usize = 16;

/// Requests that wait, in their order.
#[derive(Debug)]
pub(super) struct EarlyCalls<T> {
    requests: VecDeque<T>,
    answers: Vec<T>,
}

impl<T> Default for EarlyCalls<T> {
    fn default() -> Self {
        Self { requests: VecDeque::new(), answers: Vec::new() }
    }
}

impl<T> EarlyCalls<T> {
    /// Keeps a request until the session is idle; returns it if as many wait as may.
    pub(super) fn keep_request(&mut self, request: T) -> Result<(), T> {
        if self.requests.len() >= EARLY_REQUESTS {
            return Err(request);
        }
        self.requests.push_back(request);
        Ok(())
    }

    pub(super) fn next_request(&mut self) -> Option<T> {
        self.requests.pop_front()
    }

    /// Keeps an answer until an adopted worker has repeated its question; returns it if as many wait as may.
    pub(super) fn keep_answer(&mut self, answer: T) -> Result<(), T> {
        if self.answers.len() >= EARLY_ANSWERS {
            return Err(answer);
        }
        self.answers.push(answer);
        Ok(())
    }

    pub(super) fn take_answers(&mut self) -> Vec<T> {
        std::mem::take(&mut self.answers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_keeps_a_bounded_number_of_early_answers() {
        let mut early = EarlyCalls::default();
        for answer in 0..EARLY_ANSWERS {
            assert_eq!(early.keep_answer(answer), Ok(()));
        }
        assert_eq!(
            early.keep_answer(EARLY_ANSWERS),
            Err(EARLY_ANSWERS),
            "the machine gets it, and refuses it"
        );
        assert_eq!(early.take_answers(), (0..EARLY_ANSWERS).collect::<Vec<_>>());
        assert_eq!(early.keep_answer(0), Ok(()), "the others were submitted");
    }

    #[test]
    fn session_keeps_a_bounded_number_of_early_requests() {
        let mut early = EarlyCalls::default();
        for request in 0..EARLY_REQUESTS {
            assert_eq!(early.keep_request(request), Ok(()));
        }
        assert_eq!(early.keep_request(EARLY_REQUESTS), Err(EARLY_REQUESTS));
        assert_eq!(early.next_request(), Some(0), "the first one first");
        assert_eq!(early.keep_request(EARLY_REQUESTS), Ok(()));
    }
}
