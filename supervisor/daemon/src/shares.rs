//! The operator's limits of what owners share, as values and in the file: `[shares.NAME]`.

use super::config::Wrong;
use serde::Deserialize;
use vm_system_api::{control, rest};
use vm_system_protocol::limits;
use vm_system_runtime::client_memory::MEMORY_MIB;
use vm_system_runtime::shares::ShareLimits;

/// Limits of everything that owners share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareConfig {
    /// Connections to the control socket.
    pub connections: ShareLimits,
    /// Connections to all HTTP listeners.
    pub http_connections: ShareLimits,
    /// Streams of events, of all APIs.
    pub streams: ShareLimits,
    /// Live sessions.
    pub sessions: ShareLimits,
    /// Files of worktrees that the supervisor opens or reads at a time.
    pub file_calls: ShareLimits,
    /// Calls of host modules that brokers carry out at a time.
    pub host_calls: ShareLimits,
    /// Memory of requests of clients, and as much of replies (KiB).
    pub memory: ShareLimits,
    /// HTTP requests of sessions at a time.
    pub http_exchanges: ShareLimits,
}

impl Default for ShareConfig {
    fn default() -> Self {
        Self {
            connections: ShareLimits::at_most(control::CONNECTIONS),
            http_connections: ShareLimits::at_most(rest::CONNECTIONS),
            streams: ShareLimits::at_most(control::STREAMS),
            sessions: ShareLimits::at_most(SESSIONS),
            file_calls: ShareLimits::at_most(limits::FILE_CALLS),
            host_calls: ShareLimits::at_most(limits::BROKER_CALLS),
            memory: in_kib(ShareLimits::at_most(MEMORY_MIB)),
            http_exchanges: ShareLimits::at_most(limits::HTTP_EXCHANGES_OF_ALL),
        }
    }
}

/// Limits in MiB as limits in KiB.
const fn in_kib(ShareLimits { most, per_owner, reserved }: ShareLimits) -> ShareLimits {
    ShareLimits { most: most * 1024, per_owner: per_owner * 1024, reserved: reserved * 1024 }
}

/// Live sessions, unless the operator sets another number.
const SESSIONS: usize = 1_000;

/// [`ShareConfig`] in the file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SharesFile {
    connections: ShareFile,
    http_connections: ShareFile,
    streams: ShareFile,
    sessions: ShareFile,
    file_calls: ShareFile,
    host_calls: ShareFile,
    memory_mb: ShareFile,
    http_exchanges: ShareFile,
}

impl SharesFile {
    pub(super) fn check(&self, max_sessions: Option<u32>) -> Result<(), Wrong> {
        if max_sessions.is_some() && self.sessions.most.is_some() {
            let why = "max_sessions and most of [shares.sessions] are one setting: give one of them";
            return Err(Wrong::new(&["max_sessions"], why));
        }
        let Self {
            connections,
            http_connections,
            streams,
            sessions,
            file_calls,
            host_calls,
            memory_mb,
            http_exchanges,
        } = self;
        let default = ShareConfig::default();
        let of_sessions = max_sessions.map_or(default.sessions.most, |most| most as usize);
        let all = [
            ("connections", connections, default.connections.most),
            ("http_connections", http_connections, default.http_connections.most),
            ("streams", streams, default.streams.most),
            ("sessions", sessions, of_sessions),
            ("file_calls", file_calls, default.file_calls.most),
            ("host_calls", host_calls, default.host_calls.most),
            ("memory_mb", memory_mb, MEMORY_MIB),
            ("http_exchanges", http_exchanges, default.http_exchanges.most),
        ];
        for (name, share, default) in all {
            for (field, value) in [("most", share.most), ("per_owner", share.per_owner)] {
                if value == Some(0) {
                    let why = format!("[shares.{name}]: most and per_owner must be at least 1");
                    return Err(Wrong::new(&["shares", name, field], why));
                }
            }
            let most = share.most.map_or(default, |most| most as usize);
            if let Some(per_owner) = share.per_owner.filter(|per_owner| *per_owner as usize > most) {
                let why = format!(
                    "[shares.{name}]: per_owner ({per_owner}) is larger than most ({most}), which is for all owners"
                );
                return Err(Wrong::new(&["shares", name, "per_owner"], why));
            }
            if let Some(reserved) =
                share.reserved.filter(|reserved| *reserved > 0 && *reserved as usize >= most)
            {
                let why = format!(
                    "[shares.{name}]: reserved ({reserved}) must be less than most ({most}): nothing would be left for clients that have \
                     something already"
                );
                return Err(Wrong::new(&["shares", name, "reserved"], why));
            }
        }
        Ok(())
    }

    pub(super) fn apply(self, config: &mut ShareConfig) {
        self.connections.apply(&mut config.connections);
        self.http_connections.apply(&mut config.http_connections);
        self.streams.apply(&mut config.streams);
        self.sessions.apply(&mut config.sessions);
        self.file_calls.apply(&mut config.file_calls);
        self.host_calls.apply(&mut config.host_calls);
        let mut memory = ShareLimits::at_most(MEMORY_MIB);
        self.memory_mb.apply(&mut memory);
        config.memory = in_kib(memory);
        self.http_exchanges.apply(&mut config.http_exchanges);
    }
}

/// A part of [`ShareLimits`]; with another `most` the defaults of the others follow from that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ShareFile {
    pub(super) most: Option<u32>,
    pub(super) per_owner: Option<u32>,
    pub(super) reserved: Option<u32>,
}

impl ShareFile {
    pub(super) fn apply(self, limits: &mut ShareLimits) {
        let number = |count: Option<u32>| count.map(|count| count as usize);
        if let Some(most) = number(self.most) {
            *limits = ShareLimits::at_most(most);
        }
        limits.per_owner = number(self.per_owner).unwrap_or(limits.per_owner);
        limits.reserved = number(self.reserved).unwrap_or(limits.reserved);
        // The reserve leaves at least one for others.
        limits.reserved = limits.reserved.min(limits.most - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vm_system_api::read_toml;

    fn shares(text: &str) -> Result<ShareConfig, String> {
        let file: SharesFile = read_toml(text)?;
        file.check(None).map_err(|wrong| wrong.why)?;
        let mut shares = ShareConfig::default();
        file.apply(&mut shares);
        Ok(shares)
    }

    #[test]
    fn defaults_follow_from_the_number_of_all() {
        let text = "
            [sessions]
            most = 64
            per_owner = 10
            [connections]
            most = 1
        ";
        let shares = shares(text).unwrap();
        assert_eq!(shares.sessions, ShareLimits { most: 64, per_owner: 10, reserved: 2 });
        assert_eq!(shares.connections, ShareLimits { most: 1, per_owner: 1, reserved: 0 });
        assert_eq!(shares.streams, ShareConfig::default().streams);
    }

    #[test]
    fn errors_name_the_table() {
        assert!(shares("[streams]\nmost = 0").unwrap_err().contains("[shares.streams]"));
        assert!(shares("[streams]\nmost = 1\nreserved = 1").unwrap_err().contains("reserved (1)"));
        assert!(shares("[strems]\nmost = 1").unwrap_err().contains("strems"));
        let sessions: SharesFile = read_toml("[sessions]\nmost = 2").unwrap();
        assert!(sessions.check(Some(2)).unwrap_err().why.contains("max_sessions"));
        assert_eq!(sessions.check(None), Ok(()));
    }
}
