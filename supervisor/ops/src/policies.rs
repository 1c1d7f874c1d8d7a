//! The current policies of templates: every execution needs one, and they change rarely. All changes go through the verbs, so a
//! copy in memory is valid as long as the verbs invalidate it.

use super::built_in::{self, BUILT_IN};
use super::errors::stored;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vm_system_protocol::control::OpError;
use vm_system_protocol::ids::{SessionId, TemplateId};
use vm_system_protocol::model::{Limits, TemplateDetail};
use vm_system_record::{Owner, PolicySnapshot, Scope, TemplateRow};
use vm_system_store::StoreHandle;

/// Most entries of either kind; above it all are dropped, and loaded again when needed.
const ENTRIES: usize = 20_000;
/// Templates that are cached together (bytes of their content; each takes several times as much).
const CACHED_BYTES: usize = 32 << 20;

pub(super) struct Policies {
    store: StoreHandle,
    ceilings: Limits,
    built_in: Arc<ActiveTemplate>,
    inner: Mutex<Inner>,
}

/// An active template.
pub(super) struct ActiveTemplate {
    pub(super) owner: Owner,
    pub(super) detail: TemplateDetail,
    /// The template's policy, under the operator's ceilings.
    pub(super) policy: Arc<PolicySnapshot>,
}

#[derive(Default)]
struct Inner {
    /// `None`: deleted.
    templates: HashMap<TemplateId, Option<Arc<ActiveTemplate>>>,
    sessions: HashMap<SessionId, TemplateId>,
    /// Of the cached templates (bytes).
    bytes: usize,
    /// Counts changes, so that rows that were read before a change are not kept after it.
    changes: u64,
}

impl Policies {
    pub(super) fn new(store: StoreHandle, ceilings: Limits) -> Self {
        Self {
            built_in: Arc::new(under_ceilings(&ceilings, built_in::row())),
            store,
            ceilings,
            inner: Mutex::default(),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Nothing under this lock can panic half-way through a change.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be called after every change of a template.
    pub(super) fn changed(&self, template: TemplateId) {
        let mut inner = self.inner();
        inner.changes += 1;
        if let Some(Some(removed)) = inner.templates.remove(&template) {
            let bytes = super::template_size::bytes(&removed.detail);
            inner.bytes = inner.bytes.saturating_sub(bytes);
        }
    }

    /// Notes the template of a new session.
    pub(super) fn made(&self, session: SessionId, template: TemplateId) {
        let mut inner = self.inner();
        if inner.sessions.len() >= ENTRIES {
            inner.sessions.clear();
        }
        inner.sessions.insert(session, template);
    }

    /// The current policy of a session's template; `None` if it was deleted, or the session is not stored yet.
    pub(super) async fn of_session(
        &self,
        session: SessionId,
    ) -> Result<Option<Arc<PolicySnapshot>>, OpError> {
        let known = self.inner().sessions.get(&session).copied();
        let template = match known {
            Some(template) => template,
            None => match self.store.session(&Scope::All, session).await.map_err(stored)? {
                Some(row) => {
                    self.made(session, row.session.template_id);
                    row.session.template_id
                }
                None => return Ok(None),
            },
        };
        let known = self.template(template).await?;
        Ok(known.map(|known| Arc::clone(&known.policy)))
    }

    /// A template of any owner; `None` if it was deleted or never existed.
    pub(super) async fn template(
        &self,
        template: TemplateId,
    ) -> Result<Option<Arc<ActiveTemplate>>, OpError> {
        if template == BUILT_IN {
            return Ok(Some(Arc::clone(&self.built_in)));
        }
        let changes = {
            let inner = self.inner();
            if let Some(known) = inner.templates.get(&template) {
                return Ok(known.clone());
            }
            inner.changes
        };
        let row = self.store.template(&Scope::All, template).await.map_err(stored)?;
        let known = row.map(|row| Arc::new(under_ceilings(&self.ceilings, *row)));
        let mut inner = self.inner();
        if inner.changes == changes {
            let bytes = known.as_ref().map_or(0, |known| super::template_size::bytes(&known.detail));
            if inner.templates.len() >= ENTRIES || inner.bytes + bytes > CACHED_BYTES {
                inner.templates.clear();
                inner.bytes = 0;
            }
            inner.bytes += bytes;
            inner.templates.insert(template, known.clone());
        }
        Ok(known)
    }
}

/// The policy of a template under the operator's ceilings.
fn under_ceilings(ceilings: &Limits, row: TemplateRow) -> ActiveTemplate {
    let mut policy = PolicySnapshot::from(&row.detail);
    policy.settings.limits = policy.settings.limits.narrowed_by(ceilings);
    ActiveTemplate { owner: row.owner, detail: row.detail, policy: Arc::new(policy) }
}
