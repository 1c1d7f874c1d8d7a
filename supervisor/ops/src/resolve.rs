//! References: a whole id, a name where the row has one, or a unique prefix of an id (at least 4 characters), among the rows that
//! the caller may see. Rows of others do not exist. A name means a row of the caller's own: administrators, who may see all,
//! reach rows of others by id only, so that no owner can take over a name that another one uses.

use super::built_in::{self, BUILT_IN};
use super::errors::{invalid, not_found, stored};
use super::policies::ActiveTemplate;
use super::{Ops, VerbCall};
use std::sync::Arc;
use uuid::Uuid;
use vm_system_protocol::control::OpError;
use vm_system_protocol::ids::{ExecutionId, SessionId, TemplateId};
use vm_system_protocol::model::{Session, SessionStatus};
use vm_system_record::{
    Entity, ExecutionRow, IdKind, Owner, Page, ProgramQuery, RunQuery, Scope, SessionQuery, SessionRow,
    TemplateRow,
};

/// Shortest prefix of an id (hexadecimal digits).
pub(super) const PREFIX_MIN: usize = 4;
/// Candidates that the error about an ambiguous reference names.
const CANDIDATES: u32 = 5;
/// Longest reference (bytes); names have at most 200 characters.
const REFERENCE_BYTES: usize = 800;

impl Ops {
    pub(super) async fn template(
        &self,
        call: &VerbCall<'_>,
        reference: &str,
    ) -> Result<TemplateRow, OpError> {
        let scope = call.caller.scope();
        let reference = plausible("template", reference)?;
        let row = match reference.parse::<TemplateId>() {
            Ok(BUILT_IN) => return Ok(built_in::row()),
            Ok(id) => self.store.template(&scope, id).await.map_err(stored)?,
            Err(_) => match self
                .store
                .template_by_name(&call.caller.own(), reference)
                .await
                .map_err(stored)?
            {
                Some(row) => Some(row),
                None => match self.by_prefix(call, IdKind::Template, Entity::Template, reference).await? {
                    Some(id) => {
                        self.store.template(&scope, TemplateId::from_bytes(id)).await.map_err(stored)?
                    }
                    None => None,
                },
            },
        };
        match row {
            // Administrators see its row; its content is in `built_in`.
            Some(row) if row.detail.template.id == BUILT_IN => Ok(built_in::row()),
            None if built_in::is_meant(reference) => Ok(built_in::row()),
            Some(row) => Ok(*row),
            None => Err(self.unknown(call, Entity::Template, reference).await),
        }
    }

    /// As [`Ops::template`]; a whole id is usually resolved without a query of the store.
    pub(super) async fn known_template(
        &self,
        call: &VerbCall<'_>,
        reference: &str,
    ) -> Result<Arc<ActiveTemplate>, OpError> {
        let id = match plausible("template", reference)?.parse::<TemplateId>() {
            Ok(id) => id,
            Err(_) => self.template(call, reference).await?.detail.template.id,
        };
        let known = self.policies.template(id).await?;
        known
            .filter(|known| id == BUILT_IN || call.caller.may_see(&known.owner))
            .ok_or_else(|| not_found(Entity::Template, reference))
    }

    /// The id of a session. A whole id is resolved without a query of the store.
    pub(super) async fn session_id(
        &self,
        call: &VerbCall<'_>,
        reference: &str,
    ) -> Result<SessionId, OpError> {
        let reference = plausible("session", reference)?;
        if let Ok(id) = reference.parse::<SessionId>() {
            return Ok(id);
        }
        if let Some(id) = self.session_by_name(call, reference).await? {
            return Ok(id);
        }
        match self.by_prefix(call, IdKind::Session, Entity::Session, reference).await? {
            Some(id) => Ok(SessionId::from_bytes(id)),
            None => Err(self.unknown(call, Entity::Session, reference).await),
        }
    }

    /// A name means the live session with it, else the newest one that has ended.
    async fn session_by_name(&self, call: &VerbCall<'_>, name: &str) -> Result<Option<SessionId>, OpError> {
        let named = self.named(&call.caller.owner, name).await?;
        let live: Vec<_> =
            named.iter().filter(|session| is_live(session)).map(|session| *session.id.as_bytes()).collect();
        // There are several in a database from before names were unique.
        let live = one_of(
            &live,
            || format!("{name:?} is the name of more than one session"),
            "give the id: `vm-system session list` shows it",
        )?;
        Ok(live.map(SessionId::from_bytes).or_else(|| named.first().map(|session| session.id)))
    }

    /// The live session of an owner with a name.
    pub(super) async fn live_named(&self, owner: &Owner, name: &str) -> Result<Option<SessionId>, OpError> {
        Ok(self.named(owner, name).await?.iter().find(|session| is_live(session)).map(|session| session.id))
    }

    /// An owner's newest sessions with a name. The live one is the newest, because none is created while one is live.
    async fn named(&self, owner: &Owner, name: &str) -> Result<Vec<Session>, OpError> {
        let named = SessionQuery { name: Some(name.to_owned()), ..SessionQuery::default() };
        let newest =
            self.store.sessions(&Scope::Owner(owner.clone()), &named, Page::first(CANDIDATES + 1)).await;
        Ok(newest.map_err(stored)?.into_iter().map(|row| row.session).collect())
    }

    pub(super) async fn session(&self, call: &VerbCall<'_>, reference: &str) -> Result<SessionRow, OpError> {
        let id = self.session_id(call, reference).await?;
        let row = self.store.session(&call.caller.scope(), id).await.map_err(stored)?;
        row.map(|row| *row).ok_or_else(|| not_found(Entity::Session, reference))
    }

    pub(super) async fn execution(
        &self,
        call: &VerbCall<'_>,
        reference: &str,
    ) -> Result<ExecutionRow, OpError> {
        let scope = call.caller.scope();
        let reference = plausible("execution", reference)?;
        let whole = reference.parse::<ExecutionId>().ok();
        let mut row = match whole {
            Some(id) => self.store.execution(&scope, id).await.map_err(stored)?,
            None => None,
        };
        if row.is_none() {
            // A client may use an id as its execution's name.
            row = self.store.execution_by_name(&call.caller.owner, reference).await.map_err(stored)?;
        }
        if row.is_none()
            && whole.is_none()
            && let Some(id) = self.by_prefix(call, IdKind::Execution, Entity::Execution, reference).await?
        {
            row = self.store.execution(&scope, ExecutionId::from_bytes(id)).await.map_err(stored)?;
        }
        let Some(row) = row else { return Err(self.unknown(call, Entity::Execution, reference).await) };
        let mut row = *row;
        // The owner task still has a record that the store refused.
        if let Some(record) = self.runtime.degraded(row.execution.id) {
            row.execution = (*record).clone();
        }
        Ok(row)
    }

    /// The error for an unknown reference: with what may have been meant, or where names and ids are listed.
    pub(super) async fn unknown(&self, call: &VerbCall<'_>, entity: Entity, reference: &str) -> OpError {
        let error = not_found(entity, reference);
        if error.hint.is_some() {
            return error;
        }
        if let Some(similar) = self.similar(call, entity, reference).await {
            return error.with_hint(format!("did you mean {similar:?}?"));
        }
        if let Some((id, owner)) = self.of_another_owner(call, entity, reference).await {
            return error.with_hint(format!(
                "what others own is named by its id: the {entity} {reference:?} of {owner} has {id}"
            ));
        }
        let (kind, list) = match entity {
            Entity::Template => ("templates", "`vm-system template list`"),
            Entity::Session => ("sessions", "`vm-system session list`"),
            Entity::Program => ("programs", "`vm-system program list`"),
            Entity::Execution => (
                "executions",
                "`vm-system program runs`, or `vm-system exec list SESSION` for those of a session,",
            ),
            _ => return error,
        };
        if prefix(reference).is_some() {
            return error.with_hint(format!("{list} shows your {kind} with their ids"));
        }
        let others = if call.caller.admin { "; what others own is named by its id" } else { "" };
        error.with_hint(format!("names are looked up among your own {kind}, which {list} shows{others}"))
    }

    /// For an administrator: the id and the owner of another owner's object with this name, if there is one.
    async fn of_another_owner(
        &self,
        call: &VerbCall<'_>,
        entity: Entity,
        name: &str,
    ) -> Option<(String, Owner)> {
        if !call.caller.admin {
            return None;
        }
        let known = self.known_objects(call.caller.scope(), entity).await?;
        let found = known.into_iter().find(|(_, known, _)| known.as_deref() == Some(name));
        found.map(|(id, _, owner)| (id, owner))
    }

    /// A name or an id of the caller's own objects that is like the reference.
    async fn similar(&self, call: &VerbCall<'_>, entity: Entity, reference: &str) -> Option<String> {
        let known = self.known_objects(call.caller.own(), entity).await?;
        most_similar(reference, known.into_iter().flat_map(|(id, name, _)| name.into_iter().chain([id])))
    }

    /// Some objects of a kind with their ids, names and owners.
    async fn known_objects(
        &self,
        scope: Scope,
        entity: Entity,
    ) -> Option<Vec<(String, Option<String>, Owner)>> {
        let some = Page::first(SEARCHED);
        Some(match entity {
            Entity::Session => {
                let rows = self.store.sessions(&scope, &SessionQuery::default(), some).await.ok()?;
                let known = |row: SessionRow| (row.session.id.to_string(), row.session.name, row.owner);
                rows.into_iter().map(known).collect()
            }
            Entity::Template => {
                let rows = self.store.templates(&scope, some).await.ok()?;
                let known = |row: TemplateRow| {
                    (row.detail.template.id.to_string(), Some(row.detail.template.name), row.owner)
                };
                rows.into_iter().map(known).collect()
            }
            Entity::Program => {
                let rows = self.store.programs(&scope, &ProgramQuery::default(), some).await.ok()?;
                rows.into_iter().map(|row| (row.id.to_string(), Some(row.name), row.owner)).collect()
            }
            Entity::Execution => {
                let rows = self.store.runs(&scope, &RunQuery::default(), some).await.ok()?.into_iter();
                rows.map(|run| (run.row.execution.id.to_string(), run.row.name, run.row.owner)).collect()
            }
            _ => return None,
        })
    }

    pub(super) async fn by_prefix(
        &self,
        call: &VerbCall<'_>,
        kind: IdKind,
        entity: Entity,
        reference: &str,
    ) -> Result<Option<[u8; 16]>, OpError> {
        let Some((from, to)) = prefix(reference) else { return Ok(None) };
        let scope = call.caller.scope();
        let found = self.store.ids(&scope, kind, from, to, CANDIDATES + 1).await.map_err(stored)?;
        let many = || format!("{reference:?} is a prefix of more than one {entity} id");
        one_of(&found, many, "give more characters of the id")
    }
}

fn is_live(session: &Session) -> bool {
    matches!(session.status, SessionStatus::Ready | SessionStatus::Starting)
}

/// Objects of the caller among which a similar name or id is looked for.
const SEARCHED: u32 = 100;

/// Longest reference and name that are compared (characters): the time is that of both lengths multiplied.
const COMPARED: usize = 64;

/// The name or id that is most like a reference: at most two typing errors in at least four characters.
pub(super) fn most_similar(reference: &str, known: impl Iterator<Item = String>) -> Option<String> {
    let length = reference.chars().count();
    if !(4..=COMPARED).contains(&length) {
        return None;
    }
    let errors = |known: &String| {
        let whole = strsim::damerau_levenshtein(reference, known);
        // The beginning of an id, too.
        let is_id = known.len() == 36 && known.is_ascii() && Uuid::try_parse(known).is_ok();
        if is_id && (8..36).contains(&length) {
            whole.min(strsim::damerau_levenshtein(reference, &known[..length]))
        } else {
            whole
        }
    };
    let allowed = if length < 6 { 1 } else { 2 };
    let near = known
        .filter(|known| known.chars().count() <= COMPARED)
        .map(|known| (errors(&known), known))
        .filter(|(count, _)| (1..=allowed).contains(count));
    near.min_by_key(|(count, _)| *count).map(|(_, known)| known)
}

/// The one id that was found, if any; an error with the candidates if there are more.
fn one_of(
    found: &[[u8; 16]],
    many: impl FnOnce() -> String,
    hint: &str,
) -> Result<Option<[u8; 16]>, OpError> {
    if found.len() <= 1 {
        return Ok(found.first().copied());
    }
    let mut names: Vec<String> =
        found.iter().take(CANDIDATES as usize).map(|id| Uuid::from_bytes(*id).to_string()).collect();
    let details = serde_json::json!({ "candidates": names });
    if found.len() > CANDIDATES as usize {
        names.push("…".to_owned());
    }
    Err(invalid(format!("{}: {}", many(), names.join(", "))).with_details(&details).with_hint(hint))
}

/// The position of the id that a reference means in a list: the whole id or a unique prefix of it.
pub(super) fn find_among(
    what: &str,
    ids: impl Iterator<Item = String>,
    reference: &str,
) -> Result<Option<usize>, OpError> {
    let reference = plausible(what, reference)?.to_lowercase();
    if prefix(&reference).is_none() {
        return Err(invalid(format!("{reference:?} is not the id of a {what}"))
            .with_hint("give the whole id, or at least its first 4 characters"));
    }
    let digits = |text: &str| text.replace('-', "");
    let wanted = digits(&reference);
    let mut found = ids.enumerate().filter(|(_, id)| digits(id).starts_with(&wanted));
    match (found.next(), found.next()) {
        (Some((place, _)), None) => Ok(Some(place)),
        (None, _) => Ok(None),
        (Some(_), Some(_)) => Err(invalid(format!("{reference:?} is a prefix of more than one {what} id"))
            .with_hint("give more characters of the id")),
    }
}

pub(super) fn plausible<'a>(what: &str, reference: &'a str) -> Result<&'a str, OpError> {
    let reference = reference.trim();
    if reference.is_empty() {
        return Err(invalid(format!("the {what} is missing")));
    }
    if reference.len() > REFERENCE_BYTES {
        return Err(invalid(format!("the reference to a {what} is too long")));
    }
    Ok(reference)
}

/// The smallest and the largest id that begin with these hexadecimal digits (hyphens do not count); `None` if the text
/// is no prefix of an id.
fn prefix(reference: &str) -> Option<([u8; 16], [u8; 16])> {
    let digits: Vec<u8> = reference.chars().filter(|digit| *digit != '-').map_while(hex).collect();
    let plain = reference.chars().filter(|digit| *digit != '-').count();
    if digits.len() != plain || !(PREFIX_MIN..=32).contains(&plain) {
        return None;
    }
    let fill = |filler: u8| {
        let mut id = [0; 16];
        for (place, byte) in id.iter_mut().enumerate() {
            let digit = |offset: usize| digits.get(2 * place + offset).copied().unwrap_or(filler);
            *byte = digit(0) << 4 | digit(1);
        }
        id
    };
    Some((fill(0), fill(0xf)))
}

fn hex(digit: char) -> Option<u8> {
    digit.to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::{COMPARED, most_similar, prefix};

    #[test]
    fn only_short_names_are_compared() {
        let similar = |reference: &str, known: &str| most_similar(reference, [known.to_owned()].into_iter());
        let name = |length: usize, last: &str| format!("{}{last}", "n".repeat(length - 1));
        assert_eq!(similar(&name(COMPARED, "x"), &name(COMPARED, "y")), Some(name(COMPARED, "y")));
        assert_eq!(similar(&name(COMPARED + 1, "x"), &name(COMPARED + 1, "y")), None);
        assert_eq!(similar(&name(COMPARED, "x"), &name(COMPARED + 1, "x")), None);
    }

    #[test]
    fn prefix_spans_all_ids_that_begin_with_it() {
        let (from, to) = prefix("0192-aBc").expect("hexadecimal digits");
        assert_eq!((from[..4].to_vec(), from[4]), (vec![0x01, 0x92, 0xab, 0xc0], 0));
        assert_eq!((to[..4].to_vec(), to[4]), (vec![0x01, 0x92, 0xab, 0xcf], 0xff));
    }

    #[test]
    fn text_that_begins_no_id_is_no_prefix() {
        for text in ["", "abc", "ab-c", "wxyz", "abcdé", &"a".repeat(33)] {
            assert_eq!(prefix(text), None, "{text}");
        }
    }
}
