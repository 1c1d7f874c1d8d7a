//! Checks the values of the operator's file, alone and with each other. Changes nothing.

use super::{CeilingsFile, ConfigFile, DurableFile, HttpFile, check_command, check_counts, operator_rule};
use crate::socket::find_group;
use crate::users::UserConfig;
use vm_system_api::line_of;
use vm_system_record::Retention;

/// A setting with a value that cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// As [`line_of`] has it.
    setting: Vec<String>,
    /// For the operator; names the setting.
    pub(crate) why: String,
}

impl Wrong {
    pub(crate) fn new(setting: &[&str], why: impl Into<String>) -> Self {
        Self { setting: setting.iter().map(|&name| name.to_owned()).collect(), why: why.into() }
    }

    /// The reason with the line of the setting.
    pub(super) fn at_line(self, text: &str) -> String {
        match line_of(text, &self.setting) {
            Some(line) => format!("line {line}: {}", self.why),
            None => self.why,
        }
    }
}

impl ConfigFile {
    pub(super) fn check(&self) -> Result<(), Wrong> {
        self.check_roots()?;
        if self.max_sessions == Some(0) {
            return Err(Wrong::new(&["max_sessions"], "max_sessions must be at least 1"));
        }
        self.check_operator()?;
        for (name, path) in [
            ("secrets", &self.secrets),
            ("egress_socket", &self.egress_socket),
            ("agent_sockets", &self.agent_sockets),
        ] {
            if let Some(path) = path.as_ref().filter(|path| !path.is_absolute()) {
                let why = format!("{name} must be absolute, `{}` is not", path.display());
                return Err(Wrong::new(&[name], why));
            }
        }
        self.check_users()?;
        self.check_retention()?;
        self.durable.iter().try_for_each(DurableFile::check)?;
        self.ceilings.iter().try_for_each(CeilingsFile::check)?;
        self.shares.check(self.max_sessions)?;
        self.databases.check()?;
        self.memory_pressure.check()?;
        self.cgroups.check()?;
        self.http.iter().try_for_each(HttpFile::check)
    }

    fn check_roots(&self) -> Result<(), Wrong> {
        let roots = self.roots();
        let plain_count = self.worktree_roots.as_ref().map_or(0, Vec::len);
        let setting = |number: usize| match number.checked_sub(plain_count) {
            None => ("worktree_roots", number.to_string()),
            Some(number) => ("worktree_root", number.to_string()),
        };
        for (number, root) in roots.iter().enumerate() {
            if !root.path.is_absolute() {
                let (name, number) = setting(number);
                let why = format!("worktree_roots must be absolute, `{}` is not", root.path.display());
                // A plain root has no field `path`: the line is that of its number.
                return Err(Wrong::new(&[name, &number, "path"], why));
            }
        }
        for (number, root) in roots.iter().enumerate() {
            root.check().map_err(|error| {
                let (name, number) = setting(number);
                Wrong::new(&[name, &number], error.to_string())
            })?;
        }
        Ok(())
    }

    /// Checks commands, variables and patterns.
    fn check_operator(&self) -> Result<(), Wrong> {
        for (name, path) in self.allow_exec.iter().flatten() {
            check_command(name, path).map_err(|why| Wrong::new(&["allow_exec", name], why))?;
        }
        if let Some((name, _)) = self.env.iter().flatten().find(|(name, value)| !is_variable(name, value)) {
            return Err(Wrong::new(&["env", name], format!("env: {name:?} is not a valid variable")));
        }
        for (name, patterns) in
            [("allow_net", &self.allow_net), ("allow_net_private", &self.allow_net_private)]
        {
            for (number, pattern) in patterns.iter().flatten().enumerate() {
                operator_rule(std::slice::from_ref(pattern), false)
                    .map_err(|why| Wrong::new(&[name, &number.to_string()], format!("{name}: {why}")))?;
            }
        }
        Ok(())
    }

    fn check_users(&self) -> Result<(), Wrong> {
        if self.user.is_some() {
            let users = UserConfig { user: self.user.clone(), ..UserConfig::default() };
            users.service_user().map_err(|error| Wrong::new(&["user"], format!("`user`: {error}")))?;
        }
        if let Some(group) = &self.socket_group {
            find_group(group).map_err(|error| Wrong::new(&["socket_group"], error.to_string()))?;
        }
        let UserConfig { min_uid, max_uid, .. } = UserConfig::default();
        let (min, max) = (self.min_uid.unwrap_or(min_uid), self.max_uid.unwrap_or(max_uid));
        if min > max {
            let setting = if self.min_uid.is_some() { "min_uid" } else { "max_uid" };
            return Err(Wrong::new(&[setting], format!("min_uid ({min}) is larger than max_uid ({max})")));
        }
        Ok(())
    }

    /// Records are deleted before the database is full.
    fn check_retention(&self) -> Result<(), Wrong> {
        let Some(retention) = &self.retention else { return Ok(()) };
        let counts = [
            // `quota_mb = 0` is a daemon that stores nothing new.
            ("owner_quota_mb", retention.owner_quota_mb),
            ("owner_write_mb_per_min", retention.owner_write_mb_per_min),
        ];
        check_counts("retention", &counts)?;
        let default = Retention::default().quota_bytes >> 20;
        let quota = retention.quota_mb.map_or(default, u64::from);
        match retention.prune_above_mb.map(u64::from) {
            Some(prune) if prune > quota => {
                let setting = if retention.quota_mb.is_some() { "quota_mb" } else { "prune_above_mb" };
                let why = format!(
                    "[retention]: prune_above_mb ({prune}) is larger than quota_mb ({quota}): the database would be full before \
                     records are deleted"
                );
                Err(Wrong::new(&["retention", setting], why))
            }
            _ => Ok(()),
        }
    }
}

fn is_variable(name: &str, value: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0')
}

#[cfg(test)]
mod tests {
    use super::ConfigFile;

    #[test]
    fn each_wrong_value_is_refused_with_its_line() {
        let relative = "worktree_roots = [\n\"/a\",\n\"b\"]";
        for (text, line, why) in [
            ("stop_s = 1\nmax_sessions = 0", 2, "max_sessions must be at least 1"),
            (relative, 3, "`b` is not"),
            ("[[worktree_root]]\npath = \"/a\"\n[[worktree_root]]\npath = \"b\"", 4, "`b` is not"),
            ("\n[allow_exec]\nwc = \"wc\"", 3, "allow_exec"),
            ("\nallow_net = [\"a.example\", \"b c\"]", 2, "allow_net: "),
            ("secrets = \"s\"", 1, "secrets must be absolute"),
            ("agent_sockets = \"s\"", 1, "agent_sockets must be absolute"),
            ("\nuser = \"no-such-user-here\"", 2, "no such user"),
            ("\nuser = \"root\"", 2, "rights of root"),
            ("\nsocket_group = \"no-such-group-here\"", 2, "no such group"),
            ("max_uid = 10", 1, "min_uid (1000) is larger than max_uid (10)"),
            ("[retention]\nprune_above_mb = 20\nquota_mb = 10", 3, "prune_above_mb (20) is larger"),
            ("[retention]\nprune_above_mb = 4000000", 2, "prune_above_mb (4000000) is larger"),
            ("[shares.streams]\nmost = 4\nper_owner = 5", 3, "per_owner (5) is larger than most (4)"),
            ("[shares.streams]\nper_owner = 5000", 2, "is larger than most"),
            (
                "max_sessions = 4\n[shares.sessions]\nper_owner = 5",
                3,
                "per_owner (5) is larger than most (4)",
            ),
            ("[shares.memory_mb]\nmost = 0", 2, "at least 1"),
            ("[shares.sessions]\nmost = 2\nreserved = 0\n", 0, ""),
            ("[databases]\nowner_mb = 0", 2, "[databases]"),
            ("[databases]\nworkspace_mb = 20\nowner_mb = 10", 3, "owner_mb (10) is below workspace_mb (20)"),
            ("[retention]\nowner_quota_mb = 0", 2, "owner_quota_mb must be at least 1"),
            ("[ceilings]\ncpu_ms = 0", 2, "cpu_ms must be at least 1"),
            ("[ceilings]\nmem_mb = 0", 2, "mem_mb must be at least 1"),
            ("[durable]\n\nworkers = 0", 3, "workers must be at least 1"),
            ("[durable]\nworker_starts = 0", 2, "worker_starts must be at least 1"),
            ("[durable]\ncheckpoint_ms = 0", 2, "checkpoint_ms must be at least 1"),
            ("[shares.connections]\nmost = 4\nreserved = 4", 3, "reserved (4) must be less than most (4)"),
            ("worktree_roots = [\"/\", \"/no/such/folder\"]", 1, "/no/such/folder"),
            (
                "[[worktree_root]]\npath = \"/\"\nowners = [\"user:no-such-user-here\"]",
                1,
                "no-such-user-here",
            ),
            ("[memory_pressure]\nsuspend_stalled_percent = 30\nrefuse_stalled_percent = 20", 3, "is below"),
            ("[memory_pressure]\nmeminfo = \"/no/such/file\"", 2, "/no/such/file"),
            ("[memory_pressure]\n\nrefuse_stalled_percent = 101", 3, "[memory_pressure]"),
            ("[memory_pressure]\nmeminfo = \"m\"", 2, "must be absolute"),
            ("[cgroups]\nowner_cpu_weight = 0", 2, "[cgroups]"),
            ("[cgroups]\nsubtree = \"here\"", 2, "[cgroups]"),
            ("[http]\n\ntokens = \"t\"", 3, "http.tokens"),
            ("[http]\nallowed_hosts = [\n\"a\",\n\"b:1\"]", 4, "http.allowed_hosts"),
            ("[http]\nallowed_origins = [\"x\"]", 2, "http.allowed_origins"),
            ("[http]\nmax_body_kb = 0", 2, "http.max_body_kb"),
        ] {
            let parsed = ConfigFile::parse(text).map(drop);
            if line == 0 {
                assert_eq!(parsed, Ok(()), "{text}");
                continue;
            }
            let error = parsed.expect_err(text);
            assert!(error.starts_with(&format!("line {line}: ")) && error.contains(why), "{text}: {error}");
        }
    }
}
