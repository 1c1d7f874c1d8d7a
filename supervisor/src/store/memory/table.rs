//! An ordered map that can take back what was changed since the last commit. Knows nothing of what it holds.

use std::collections::BTreeMap;
use std::ops::RangeBounds;

/// Rows by key, with a journal of what the running batch has replaced.
#[derive(Debug)]
pub(super) struct Table<K, V> {
    rows: BTreeMap<K, V>,
    journal: Vec<(K, Option<V>)>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), journal: Vec::new() }
    }
}

impl<K: Ord + Clone, V: Clone> Table<K, V> {
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.rows.get(key)
    }
    pub(super) fn contains(&self, key: &K) -> bool {
        self.rows.contains_key(key)
    }
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.rows.iter()
    }
    pub(super) fn range(&self, range: impl RangeBounds<K>) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.rows.range(range)
    }
    pub(super) fn set(&mut self, key: K, value: V) {
        let old = self.rows.insert(key.clone(), value);
        self.journal.push((key, old));
    }
    /// Whether there was such a row.
    pub(super) fn remove(&mut self, key: &K) -> bool {
        match self.rows.remove(key) {
            Some(old) => {
                self.journal.push((key.clone(), Some(old)));
                true
            }
            None => false,
        }
    }
    /// Removes all rows whose keys are given; how many there were.
    pub(super) fn remove_all(&mut self, keys: &[K]) -> u64 {
        keys.iter().filter(|key| self.remove(key)).count() as u64
    }
    pub(super) fn commit(&mut self) {
        self.journal.clear();
    }
    pub(super) fn roll_back(&mut self) {
        while let Some((key, old)) = self.journal.pop() {
            match old {
                Some(value) => self.rows.insert(key, value),
                None => self.rows.remove(&key),
            };
        }
    }
}
