//! Verbs of a client's current execution: the default of requests that name no execution.

use super::checked_name;
use crate::errors::stored;
use crate::{Ops, VerbCall};
use vm_system_protocol::control::{CurrentGet, CurrentSet, OpError, RunGet};
use vm_system_protocol::model::Run;
use vm_system_record::Write;

impl Ops {
    pub(crate) async fn current_get(
        &self,
        call: &VerbCall<'_>,
        CurrentGet { client }: CurrentGet,
    ) -> Result<Option<Run>, OpError> {
        let client = checked_name("client", &client)?;
        let known = self.store.current(&call.caller.owner, client).await.map_err(stored)?;
        let Some(execution) = known else { return Ok(None) };
        self.run_get(call, RunGet { execution: execution.to_string() }).await.map(Some)
    }

    pub(crate) async fn current_set(
        &self,
        call: &VerbCall<'_>,
        CurrentSet { client, execution: reference }: CurrentSet,
    ) -> Result<Run, OpError> {
        let client = checked_name("client", &client)?;
        let execution = self.run(call, &reference).await?.row.execution.id;
        let write = Write::CurrentSet {
            owner: call.caller.owner.clone(),
            client: client.to_owned(),
            execution,
            at: self.store.now(),
        };
        let result = self.store_of(call).apply(write).await.map_err(stored);
        self.audit(call, execution, &result).await;
        result?;
        self.run_get(call, RunGet { execution: execution.to_string() }).await
    }
}
