//! Which builds run, and the deadline by which an administrator has workers of other builds than the supervisor's replaced.

use super::backups::only_administrators;
use super::{Ops, VerbCall};
use vm_system_protocol::control::{OpError, Upgrade, UpgradeDrain, UpgradeReport};
use vm_system_runtime::DrainChange;

impl Ops {
    pub(crate) async fn upgrade(&self, call: &VerbCall<'_>, _: Upgrade) -> Result<UpgradeReport, OpError> {
        only_administrators(call, "see the processes of all owners")?;
        Ok(self.runtime.builds(DrainChange::Keep).await)
    }

    pub(crate) async fn upgrade_drain(
        &self,
        call: &VerbCall<'_>,
        UpgradeDrain { drain_by }: UpgradeDrain,
    ) -> Result<UpgradeReport, OpError> {
        let change = drain_by.map_or(DrainChange::Withdraw, DrainChange::Set);
        let result = match only_administrators(call, "have sessions of other builds replaced") {
            Ok(()) => Ok(self.runtime.builds(change).await),
            Err(refusal) => Err(refusal),
        };
        let subject = drain_by.map_or_else(|| "cancel".to_owned(), |at| at.to_string());
        self.audit(call, subject, &result).await;
        result
    }
}
