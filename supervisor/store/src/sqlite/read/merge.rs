//! Lists that consist of several parts of indexes: of each owner, of each status. Every part is in the order of the list, so a page is
//! merged from the beginnings of the parts, and costs neither a sort nor the rows of other parts. Only keys are merged; callers read
//! the rows by their ids.

use super::{Read, Select};
use rusqlite::Connection;
use rusqlite::types::Value;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use vm_system_protocol::control::Period;
use vm_system_record::{Page, Scope};

/// Most keys that are read of a part at a time.
const MOST_KEYS: u32 = 1_000;

/// An index: columns that select a part, then time and id, which are the order of a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListIndex {
    pub(super) table: &'static str,
    /// The name of its rows in conditions.
    pub(super) alias: &'static str,
    pub(super) name: &'static str,
    /// Rows that the index has; empty: all.
    pub(super) has: &'static str,
    /// The columns before the time.
    pub(super) selects: &'static [&'static str],
    pub(super) time: &'static str,
    pub(super) id: &'static str,
}

/// A part of a list: the rows of an index with these values in its first columns.
#[derive(Debug, Clone)]
pub(super) struct ListPart {
    pub(super) index: ListIndex,
    pub(super) values: Vec<Value>,
}

/// A list: its order and which rows of its parts belong to it.
pub(super) struct MergedList {
    pub(super) parts: Vec<ListPart>,
    pub(super) newest_first: bool,
    pub(super) period: Period,
    pub(super) page: Page,
    /// Further conditions; one with a value ends in an operator.
    pub(super) conditions: Vec<(&'static str, Option<Value>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ListKey {
    at: i64,
    id: [u8; 16],
}

/// A part while it is being merged.
struct PartReader {
    part: ListPart,
    keys: VecDeque<ListKey>,
    last: Option<ListKey>,
    /// Number of keys to read next: few at first, because most parts contribute little to a page.
    count: u32,
    is_exhausted: bool,
}

/// The next key of a part, in the order of a heap: the first one of the list is the greatest.
#[derive(PartialEq, Eq)]
struct NextKey {
    key: ListKey,
    part: usize,
    newest_first: bool,
}

impl Ord for NextKey {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = self.key.cmp(&other.key);
        let order = if self.newest_first { order } else { order.reverse() };
        order.then(other.part.cmp(&self.part))
    }
}

impl PartialOrd for NextKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl MergedList {
    /// Passes the ids of the page in order to `take`, which returns false to end the page early.
    pub(super) fn each_id(&self, c: &Connection, mut take: impl FnMut([u8; 16]) -> Read<bool>) -> Read<()> {
        // Few keys of each part at first: reading a whole page of each would read most of them in vain.
        let share = self.page.limit / u32::try_from(self.parts.len()).unwrap_or(u32::MAX).max(1);
        let count = share.saturating_add(1).min(self.page.limit).min(MOST_KEYS);
        let reader = |part: &ListPart| PartReader {
            part: part.clone(),
            keys: VecDeque::new(),
            last: None,
            count,
            is_exhausted: false,
        };
        let mut readers: Vec<PartReader> = self.parts.iter().map(reader).collect();
        let mut heap = BinaryHeap::with_capacity(readers.len());
        for place in 0..readers.len() {
            heap.extend(self.next_key(c, &mut readers, place)?);
        }
        for _ in 0..self.page.limit {
            let Some(NextKey { key, part, .. }) = heap.pop() else { break };
            if !take(key.id)? {
                break;
            }
            // Only the part whose key was taken: the heap has one key of each of the others.
            heap.extend(self.next_key(c, &mut readers, part)?);
        }
        Ok(())
    }

    fn next_key(&self, c: &Connection, readers: &mut [PartReader], part: usize) -> Read<Option<NextKey>> {
        let Some(reader) = readers.get_mut(part) else { return Ok(None) };
        if reader.keys.is_empty() && !reader.is_exhausted {
            let read = self.keys(c, &reader.part, reader.last, reader.count)?;
            reader.is_exhausted = read.len() < reader.count as usize;
            reader.last = read.last().copied();
            // Doubled: a part that gives most of the page is read in a few steps.
            reader.count = reader.count.saturating_mul(2).min(MOST_KEYS);
            reader.keys = read.into();
        }
        let newest_first = self.newest_first;
        Ok(reader.keys.pop_front().map(|key| NextKey { key, part, newest_first }))
    }

    fn keys(&self, c: &Connection, part: &ListPart, last: Option<ListKey>, count: u32) -> Read<Vec<ListKey>> {
        self.select("SELECT", part, last, count)
            .rows(c, |row| Ok(ListKey { at: row.get(0)?, id: row.get(1)? }))
    }

    /// The statement that reads keys of a part behind one of them; `verb` is `SELECT`, or `EXPLAIN QUERY PLAN SELECT` in tests.
    pub(super) fn select(&self, verb: &str, part: &ListPart, last: Option<ListKey>, count: u32) -> Select {
        let ListIndex { table, alias, name, has, selects, time, id } = part.index;
        let mut select = Select::new(&format!(
            "{verb} {alias}.{time}, {alias}.{id} FROM {table} AS {alias} INDEXED BY {name}"
        ));
        if !has.is_empty() {
            select.and(has);
        }
        for (column, value) in selects.iter().zip(&part.values) {
            select.and_value(&format!("{alias}.{column} ="), value.clone());
        }
        self.bounds(&mut select, &format!("{alias}.{time}"), &format!("{alias}.{id}"), last);
        for (condition, value) in &self.conditions {
            match value {
                Some(value) => select.and_value(condition, value.clone()),
                None => select.and(condition),
            };
        }
        select.paged = true;
        let direction = if self.newest_first { "DESC" } else { "ASC" };
        select
            .text(&format!(" ORDER BY {alias}.{time} {direction}, {alias}.{id} {direction} LIMIT"))
            .value(i64::from(count));
        select
    }

    /// The keys behind the cursor and within the period. Of two bounds on one side only the narrower one is a condition, as in
    /// [`Select::newest_first_in`].
    fn bounds(&self, select: &mut Select, time: &str, id: &str, last: Option<ListKey>) {
        let cursor = self.page.after.map(|after| ListKey { at: after.at.0, id: after.id });
        let passed = last.or(cursor);
        let since = self.period.since.map(|at| (">=", at.0));
        let until = self.period.until.map(|at| ("<", at.0));
        let (begin, end, than) = if self.newest_first { (until, since, "<") } else { (since, until, ">") };
        if let Some((operator, at)) = end {
            select.and_value(&format!("{time} {operator}"), at);
        }
        let is_narrower = |key: &ListKey| {
            begin.is_none_or(|(_, at)| if self.newest_first { key.at < at } else { key.at >= at })
        };
        match (passed.filter(is_narrower), begin) {
            (Some(key), _) => begin_behind(select, time, id, than, key),
            (None, Some((operator, at))) => {
                select.and_value(&format!("{time} {operator}"), at);
            }
            (None, None) => {}
        }
    }
}

fn begin_behind(select: &mut Select, time: &str, id: &str, than: &str, key: ListKey) {
    let condition = format!("({time}, {id}) {than} (");
    select.and(&condition).value(key.at).text(",").value(key.id.to_vec()).text(")");
}

/// The owners in a scope that have rows in an index, whose first column is the owner: a look-up for each, not a scan.
pub(super) fn owners(c: &Connection, scope: &Scope, index: ListIndex) -> Read<Vec<Value>> {
    if let Scope::Owner(owner) = scope {
        return Ok(vec![owner.as_str().to_owned().into()]);
    }
    let ListIndex { table, name, has, .. } = index;
    let mut owners: Vec<Value> = Vec::new();
    loop {
        let mut select = Select::new(&format!("SELECT owner FROM {table} INDEXED BY {name}"));
        if !has.is_empty() {
            select.and(has);
        }
        let before = owners.last().cloned().unwrap_or_else(|| String::new().into());
        select.and_value("owner >", before).text(" ORDER BY owner LIMIT 1");
        select.paged = true;
        match select.first(c, |row| Ok(row.get::<_, String>(0)?))? {
            Some(owner) => owners.push(owner.into()),
            None => return Ok(owners),
        }
    }
}
