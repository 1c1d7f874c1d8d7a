//! Verbs about templates.

use super::built_in::{self, BUILT_IN};
use super::errors::{full, stored};
use super::policies::ActiveTemplate;
use super::{LIST_ROWS, Ops, VerbCall, fitting, idempotency, modules, page, settings, startup_files};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::sync::OwnedMutexGuard;
use uuid::Uuid;
use vm_system_protocol::control::{
    AGENT_TEMPLATE, ErrorCode, OpError, TemplateAddModule, TemplateCreate, TemplateDelete, TemplateDeleted,
    TemplateGet, TemplateList, TemplateName, TemplateRemoveModule, TemplateUpdate, Verb as _,
};
use vm_system_protocol::ids::TemplateId;
use vm_system_protocol::model::{Engine, Settings, Template, TemplateDetail};
use vm_system_record::{Batch, Entity, Page, Rejection, StorageLimit, StoreError, Write};
use vm_system_runtime::client_memory::ReplyMemory;
use vm_system_store::DatabaseFault;

impl Ops {
    pub(crate) async fn template_create(
        &self,
        call: &VerbCall<'_>,
        TemplateCreate { name, engine, settings, modules }: TemplateCreate,
    ) -> Result<Template, OpError> {
        let name = settings::name(&name)?;
        built_in::name_is_free(&name)?;
        settings::check(&settings, engine, &self.options.ceilings)?;
        if !modules.is_empty() {
            has_parts(engine, "host modules")?;
        }
        let mut names = modules
            .iter()
            .map(|name| modules::checked(name, &self.options))
            .collect::<Result<Vec<_>, _>>()?;
        names.sort_unstable();
        names.dedup();
        self.check_quota(call)?;
        let at = self.store.now();
        let template = Template {
            id: TemplateId::from_uuid(call.subject),
            name: name.clone(),
            engine,
            is_active: true,
            exposed_modules: names,
            libraries: Vec::new(),
            created_at: at,
            updated_at: at,
            built_in: false,
        };
        let detail = TemplateDetail {
            template: template.clone(),
            settings,
            capabilities: Vec::new(),
            startup_files: Vec::new(),
        };
        let write = Write::TemplateInsert { owner: call.caller.owner.clone(), detail: Box::new(detail) };
        let result = self.store_of(call).apply(write).await.map_err(|error| taken(error, &name));
        self.audit(call, template.id, &result).await;
        result.map(|_| template)
    }

    pub(crate) async fn template_list(
        &self,
        call: &VerbCall<'_>,
        TemplateList { page: list, built_in: with_built_in }: TemplateList,
    ) -> Result<Vec<Template>, OpError> {
        let page = page(list, LIST_ROWS)?;
        // Administrators also see the stored row of the built-in template.
        let wider = Page { limit: page.limit.saturating_add(1), ..page };
        let rows = self.store.templates(&call.caller.scope(), wider).await.map_err(stored)?;
        let rows = rows.into_iter().filter(|row| row.detail.template.id != BUILT_IN);
        let last =
            with_built_in.then(built_in::row).filter(|_| page.after.is_none_or(|after| after.at.0 > 0));
        let rows = rows.chain(last).take(page.limit as usize);
        let weight = |template: &Template| {
            let names = template.exposed_modules.iter().chain(&template.libraries);
            128 + template.name.len() + names.map(|name| 16 + name.len()).sum::<usize>()
        };
        Ok(fitting(rows.map(|row| row.detail.template), weight))
    }

    pub(crate) async fn template_get(
        &self,
        call: &VerbCall<'_>,
        TemplateGet { template }: TemplateGet,
    ) -> Result<TemplateDetail, OpError> {
        Ok(self.template(call, &template).await?.detail)
    }

    pub(crate) async fn template_update(
        &self,
        call: &VerbCall<'_>,
        TemplateUpdate { template, change }: TemplateUpdate,
    ) -> Result<TemplateDetail, OpError> {
        let name = change.name.as_deref().map(settings::name).transpose()?;
        name.as_deref().map_or(Ok(()), built_in::name_is_free)?;
        let _deciding = self.deciding(call, &template).await?;
        let detail = self.template(call, &template).await?.detail;
        let settings = change
            .settings
            .map(|patch| settings::merged(&detail.settings, &patch))
            .transpose()?
            .map(Box::new);
        if let Some(settings) = &settings {
            settings::check(settings, detail.template.engine, &self.options.ceilings)?;
            startup_files::still_fit(&detail.startup_files, settings)?;
        }
        let id = detail.template.id;
        let shown = name.clone().unwrap_or_default();
        let write = Write::TemplateUpdate { id, name, settings, at: self.store.now() };
        self.template_change(call, id, write, &shown).await
    }

    pub(crate) async fn template_delete(
        &self,
        call: &VerbCall<'_>,
        TemplateDelete { template }: TemplateDelete,
    ) -> Result<TemplateDeleted, OpError> {
        // No lock: nothing of the template decides, and the store refuses a change that comes after the deletion.
        let id = self.template(call, &template).await?.detail.template.id;
        let reply = TemplateDeleted { status: "ok".to_owned(), template_id: id };
        let deletion = Write::TemplateDelete { id, at: self.store.now() };
        let batch: Vec<Write> =
            [deletion].into_iter().chain(idempotency::response::<TemplateDelete>(call, &reply)).collect();
        self.part_changed(call, id, batch).await?;
        Ok(reply)
    }

    pub(crate) async fn template_add_module(
        &self,
        call: &VerbCall<'_>,
        TemplateAddModule { template, name }: TemplateAddModule,
    ) -> Result<TemplateName, OpError> {
        // No lock: the engine decides, which never changes, and a module that is there is not added twice.
        let detail = self.template(call, &template).await?.detail;
        let name = modules::checked(&name, &self.options)?;
        has_parts(detail.template.engine, "host modules")?;
        let id = detail.template.id;
        let write = Write::ModuleAdd { template: id, name: name.clone(), at: self.store.now() };
        self.part_changed(call, id, write).await?;
        Ok(TemplateName { template_id: id, name })
    }

    pub(crate) async fn template_remove_module(
        &self,
        call: &VerbCall<'_>,
        TemplateRemoveModule { template, name }: TemplateRemoveModule,
    ) -> Result<TemplateName, OpError> {
        let id = self.template(call, &template).await?.detail.template.id;
        // No check of the catalog: a name that is no longer in it must still be removable.
        let name = modules::normal(&name)?;
        let write = Write::ModuleRemove { template: id, name: name.clone(), at: self.store.now() };
        self.part_changed(call, id, write).await?;
        Ok(TemplateName { template_id: id, name })
    }

    /// The lock of the owner of a template, held while a verb reads the template, decides and writes.
    pub(super) async fn deciding(
        &self,
        call: &VerbCall<'_>,
        template: &str,
    ) -> Result<OwnedMutexGuard<()>, OpError> {
        // The owner of a template never changes. All else is read under the lock: another verb may hold it now and change that.
        let owner = self.template(call, template).await?.owner;
        Ok(self.deciding.lock(&owner).await)
    }

    /// Applies a change and returns the template as it is now.
    async fn template_change(
        &self,
        call: &VerbCall<'_>,
        id: TemplateId,
        write: Write,
        name: &str,
    ) -> Result<TemplateDetail, OpError> {
        self.changed(call, id, write, |error| taken(error, name)).await?;
        self.template_get(call, TemplateGet { template: id.to_string() }).await
    }

    /// Applies a change of a template or its parts that the store does not reject.
    pub(super) async fn part_changed(
        &self,
        call: &VerbCall<'_>,
        id: TemplateId,
        write: impl Into<Batch>,
    ) -> Result<(), OpError> {
        self.changed(call, id, write, stored).await
    }

    /// Applies a change of a template or its parts; `refused` maps the store's rejection to an error.
    pub(super) async fn changed(
        &self,
        call: &VerbCall<'_>,
        id: TemplateId,
        write: impl Into<Batch>,
        refused: impl FnOnce(StoreError) -> OpError,
    ) -> Result<(), OpError> {
        let result = match built_in::not_changed(id) {
            Ok(()) => self.store_of(call).apply(write).await.map_err(refused),
            Err(error) => Err(error),
        };
        // Also after a failure: a failing disk may have stored the change.
        self.policies.changed(id);
        self.audit(call, id, &result).await;
        result.map(|_| ())
    }

    /// The template that a session is created from; [`AGENT_TEMPLATE`] is created where its owner has none.
    pub(super) async fn template_of_session(
        &self,
        call: &VerbCall<'_>,
        reference: &str,
    ) -> Result<Arc<ActiveTemplate>, OpError> {
        match self.known_template(call, reference).await {
            Err(error) if error.code == ErrorCode::TemplateNotFound && reference == AGENT_TEMPLATE => {}
            known => return known,
        }
        // A separate verb with its own line in the audit log.
        let create = VerbCall {
            caller: call.caller,
            presence: call.presence.clone(),
            verb: TemplateCreate::NAME,
            subject: Uuid::now_v7(),
            follower: None,
            noted: AtomicBool::default(),
            key: None,
            memory: ReplyMemory::default(),
        };
        let new = TemplateCreate {
            name: AGENT_TEMPLATE.to_owned(),
            engine: Engine::Quickjs,
            settings: Settings::default(),
            modules: vec!["fs".to_owned()],
        };
        match Box::pin(self.template_create(&create, new)).await {
            // Another client of the owner was faster.
            Err(error) if error.code != ErrorCode::Conflict => Err(error),
            _ => self.known_template(call, reference).await,
        }
    }

    /// New rows are refused above the quota, so that running executions can still be recorded, and where the database is damaged or
    /// its file is gone, because they might be lost.
    pub(super) fn check_quota(&self, call: &VerbCall<'_>) -> Result<(), OpError> {
        if self.store.is_full(&call.caller.owner) {
            return Err(full(StorageLimit::OwnerQuota));
        }
        let status = self.store.status();
        if let Some(fault) = status.fault.filter(DatabaseFault::refuses_work) {
            let error =
                OpError::new(ErrorCode::StorageUnavailable, format!("nothing new is accepted: {fault}"));
            return Err(error.with_hint(fault.hint()));
        }
        if !status.over_quota {
            return Ok(());
        }
        Err(OpError::new(
            ErrorCode::StorageUnavailable,
            if call.caller.admin {
                format!("the database is above its quota ({} bytes in use)", status.bytes_used)
            } else {
                "the database is above its quota".to_owned()
            },
        )
        .with_hint("wait until old records are deleted, shorten their retention, or raise the quota"))
    }
}

fn taken(error: StoreError, name: &str) -> OpError {
    match error {
        StoreError::Rejected(Rejection::Conflict(Entity::Template)) => {
            OpError::new(ErrorCode::Conflict, format!("a template named {name:?} exists already"))
                .with_details(&serde_json::json!({ "name": name }))
                .with_hint("choose another name, or change that one: `vm-system template update NAME`")
        }
        other => stored(other),
    }
}

/// Refuses parts that only the quickjs engine has.
pub(super) fn has_parts(engine: Engine, what: &str) -> Result<(), OpError> {
    if engine != Engine::Cvm {
        return Ok(());
    }
    Err(OpError::new(ErrorCode::EngineUnsupported, format!("the cvm engine has no {what}"))
        .with_hint("create a template with engine quickjs"))
}
