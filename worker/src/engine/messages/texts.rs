//! Owns the texts that were evaluated, for as long as errors may be thrown in them: a bounded number of bytes.

use super::calls::Candidate;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

/// Longest text that is kept, and most bytes of all: parsing a longer one for a message would take long.
const TEXT_BYTES: usize = 256 * 1024;
const ALL_BYTES: usize = 1024 * 1024;
/// Most positions whose candidates are kept.
const POSITIONS: usize = 64;

/// A text as QuickJS got it.
#[derive(Clone)]
pub(super) struct Kept {
    name: Rc<str>,
    number: u64,
    pub(super) text: Rc<str>,
    pub(super) module: bool,
    /// Mentions iterators: there may be some that are not the language's.
    iterators: bool,
}

/// See the file's description.
#[derive(Default)]
pub(in crate::engine) struct SourceTexts {
    /// Newest last.
    kept: VecDeque<Kept>,
    bytes: usize,
    last: u64,
    /// Names of texts that are not kept, or not any more, with the number of the newest one.
    dropped: HashMap<Rc<str>, u64>,
    /// One of them may define iterators.
    dropped_iterators: bool,
    /// The candidates that were found in a text, by its number, line and column.
    found: HashMap<(u64, u32, u32), Rc<[Candidate]>>,
}

impl SourceTexts {
    /// Keeps a text that is about to be evaluated under this name.
    pub(in crate::engine) fn keep(&mut self, name: &str, text: &str, module: bool) {
        self.last += 1;
        let (name, number, iterators): (Rc<str>, _, _) = (name.into(), self.last, text.contains("terator"));
        if text.len() > TEXT_BYTES {
            self.dropped.insert(name, number);
            self.dropped_iterators |= iterators;
            return;
        }
        self.bytes += text.len();
        self.kept.push_back(Kept { name, number, text: text.into(), module, iterators });
        while self.bytes > ALL_BYTES {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.bytes -= oldest.text.len();
            self.dropped_iterators |= oldest.iterators;
            let newest = self.dropped.entry(oldest.name).or_default();
            *newest = oldest.number.max(*newest);
        }
    }

    /// The texts with this name, newest first; `true`: there is no other one.
    pub(super) fn named(&self, name: &str) -> (Vec<Kept>, bool) {
        let kept: Vec<Kept> = self.kept.iter().rev().filter(|kept| *kept.name == *name).cloned().collect();
        let alone = kept.len() == 1 && !self.dropped.contains_key(name);
        (kept, alone)
    }

    /// The text that was evaluated last under this name.
    pub(super) fn newest(&self, name: &str) -> Option<Kept> {
        let dropped = self.dropped.get(name).copied().unwrap_or_default();
        self.named(name).0.into_iter().next().filter(|kept| kept.number > dropped)
    }

    /// Whether iterators may exist that are not the language's, and so may lack a method `next`.
    pub(super) fn may_have_iterators(&self) -> bool {
        self.dropped_iterators || self.kept.iter().any(|kept| kept.iterators)
    }

    /// The candidates of a position; `find` is called if they are not known.
    pub(super) fn candidates(
        &mut self,
        kept: &Kept,
        (line, column): (u32, u32),
        find: impl FnOnce() -> Vec<Candidate>,
    ) -> Rc<[Candidate]> {
        let key = (kept.number, line, column);
        if let Some(found) = self.found.get(&key) {
            return found.clone();
        }
        if self.found.len() >= POSITIONS {
            self.found.clear();
        }
        let found: Rc<[Candidate]> = find().into();
        self.found.insert(key, found.clone());
        found
    }
}
