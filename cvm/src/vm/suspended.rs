//! Suspended functions, for display: which items each of them waits for. Runs no code.
//!
//! A function that awaits an item's promise waits for this item, and so does a function that awaits the promise of such a function, or
//! a promise that was derived from the item's: by `then`, `Promise.all`, `race` and the like. A promise that code of the program
//! settles by calling its resolving functions is not followed: its reactions do not show when that will be.
//!
//! Owns: this search. Must not: change the state.

use super::Vm;
use super::coroutine::state;
use crate::heap::Cell;
use crate::heap::object::{Code, Coroutine, ObjectKind};
use crate::ops::Opcode;
use crate::program::{CompiledProgram, USER_TEMPLATES};
use crate::value::{Id, Value};
use std::collections::{HashMap, HashSet};

/// A suspended function.
pub(super) struct Suspended {
    /// The coroutine with its frame
    pub id: Id,
    /// Numbers of the items that it waits for, ascending
    pub items: Vec<u64>,
}

/// Most items that are listed for one function.
const MOST_ITEMS_SHOWN: usize = 100;
/// Most promises that are visited: a program may have a long chain of functions for each of its items. Items beyond are shown with no function.
const MOST_VISITS: usize = 1 << 18;

impl Vm<'_> {
    /// The program's own functions that wait in an `await`: those that wait for the oldest items first, of each item the innermost
    /// first, then those of which no item is known.
    pub(super) fn suspended(&self) -> Vec<Suspended> {
        let mut list: Vec<Suspended> = Vec::new();
        let mut known: HashMap<Id, usize> = HashMap::new();
        let mut visits = 0;
        for (&number, &promise) in &self.st.items {
            for id in self.waiting_for(promise, &mut visits) {
                let place = *known.entry(id).or_insert(list.len());
                if place == list.len() {
                    list.push(Suspended { id, items: Vec::new() });
                }
                if list[place].items.len() < MOST_ITEMS_SHOWN {
                    list[place].items.push(number);
                }
            }
        }
        for (i, cell) in self.st.heap.cells.iter().enumerate() {
            let id = Id(i as u32);
            if let Cell::Obj(object) = cell
                && let ObjectKind::Coroutine(coroutine) = &object.kind
                && is_awaiting(self.p, coroutine)
                && !known.contains_key(&id)
            {
                list.push(Suspended { id, items: Vec::new() });
            }
        }
        list
    }

    /// The functions that wait for a promise, innermost first.
    fn waiting_for(&self, promise: Id, visits: &mut usize) -> Vec<Id> {
        let (mut functions, mut known) = (Vec::new(), HashSet::from([promise]));
        let mut promises = vec![promise];
        // From the innermost outwards: a list that grows while it is read.
        let mut next = 0;
        while let Some(&promise) = promises.get(next)
            && *visits < MOST_VISITS
        {
            next += 1;
            *visits += 1;
            let ObjectKind::Promise(promise) = &self.st.heap.obj(promise).kind else { continue };
            for &(who, fulfilled, rejected) in &promise.reactions {
                let mut derived = Vec::new();
                match self.awaiting(who, fulfilled) {
                    Some((id, coroutine)) => {
                        if coroutine.template >= USER_TEMPLATES && known.insert(id) {
                            functions.push(id);
                        }
                        self.outcomes(coroutine, &mut derived);
                    }
                    None => self.derived(who, [fulfilled, rejected], &mut derived),
                }
                promises.extend(derived.into_iter().filter(|promise| known.insert(*promise)));
            }
        }
        functions
    }

    /// The coroutine that a reaction resumes.
    fn awaiting(&self, who: Value, marker: Value) -> Option<(Id, &Coroutine)> {
        let id = who.as_obj().filter(|_| marker == Value::Uninit)?;
        Some((id, self.coroutine(id)?))
    }

    /// The promises that a suspended function settles when it goes on: its own, or those of the requests to an async generator.
    fn outcomes(&self, coroutine: &Coroutine, found: &mut Vec<Id>) {
        let Value::Obj(link) = coroutine.link else { return };
        match &self.st.heap.obj(link).kind {
            ObjectKind::Promise(_) => found.push(link),
            ObjectKind::Array(requests) => {
                let promises = requests.dense.iter().filter_map(|request| self.listed_object(*request, 2));
                found.extend(promises.filter(|promise| self.is_promise(*promise)));
            }
            _ => {}
        }
    }

    /// The promises that depend on a reaction: that of its capability, and those in the scopes of handlers that are the engine's.
    fn derived(&self, capability: Value, handlers: [Value; 2], found: &mut Vec<Id>) {
        found.extend(self.promise_of_capability(capability));
        for handler in handlers {
            let mut scope = match self.function(handler) {
                Some((Code::Template(template), scope)) if template < USER_TEMPLATES => scope,
                _ => continue,
            };
            while let Value::Cell(id) = scope
                && let Some(Cell::Scope(parent, slots)) = self.st.heap.cell(id)
            {
                for &slot in slots {
                    match slot {
                        Value::Obj(id) if self.is_promise(id) => found.push(id),
                        _ => found.extend(self.promise_of_capability(slot)),
                    }
                }
                scope = *parent;
            }
        }
    }

    fn is_promise(&self, id: Id) -> bool {
        matches!(self.st.heap.obj(id).kind, ObjectKind::Promise(_))
    }

    /// Code and scope of a function.
    fn function(&self, value: Value) -> Option<(Code, Value)> {
        match &self.st.heap.obj(value.as_obj()?).kind {
            ObjectKind::Function(function) => Some((function.code, function.env)),
            _ => None,
        }
    }

    /// An object in an array of the engine.
    fn listed_object(&self, array: Value, index: usize) -> Option<Id> {
        match &self.st.heap.obj(array.as_obj()?).kind {
            ObjectKind::Array(array) => array.dense.get(index)?.as_obj(),
            _ => None,
        }
    }

    /// A capability is a list of a promise and its two resolving functions.
    fn promise_of_capability(&self, value: Value) -> Option<Id> {
        let resolves =
            |index| self.listed_object(value, index).is_some_and(|id| self.is_callable(Value::Obj(id)));
        let promise = self.listed_object(value, 0).filter(|id| self.is_promise(*id))?;
        (resolves(1) && resolves(2)).then_some(promise)
    }
}

/// Whether a function of the program waits in an `await`.
fn is_awaiting(program: &CompiledProgram, coroutine: &Coroutine) -> bool {
    let template = program.template(coroutine.template);
    let before = template.start.wrapping_add(coroutine.pc).wrapping_sub(1);
    coroutine.template >= USER_TEMPLATES
        && coroutine.state == state::SUSPENDED
        && program.code.get(before as usize).is_some_and(|instruction| instruction.op == Opcode::Await)
}
