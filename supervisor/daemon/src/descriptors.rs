//! Divides the descriptors of the daemon between what owners share: connections, sessions, workers of programs. What the limit has no
//! descriptors for is lowered, with a line in the log and a row of `ops doctor`. Opens nothing, sets no limit.

use super::error::DaemonError;
use super::shares::ShareConfig;
use vm_system_runtime::DurableConfig;
use vm_system_runtime::shares::ShareLimits;
use vm_system_sandbox::rlimit;

/// Below it the daemon does not start: its own files, jail and listeners take about half of them.
const FEWEST: usize = 128;
/// Not divided: for the daemon's own, for clients that are refused, for files that are read, for lookups of users. At least
/// so many, and one in [`SPARE_PART`] up to [`SPARE_MOST`].
const SPARE_LEAST: usize = 64;
const SPARE_PART: usize = 8;
const SPARE_MOST: usize = 512;
/// The most that a session has: channel, pidfd and watched pidfd of its worker, channel of its broker for files, those three of
/// its broker for databases; its part of its owner's files agent.
const OF_A_SESSION: usize = 8;
const ADVICE: &str = "raise the descriptor limit (LimitNOFILE=, ulimit -Hn) for more";

/// One thing that owners share.
struct Part<'a> {
    /// The table of the configuration.
    setting: &'static str,
    most: &'a mut usize,
    /// The most without a configuration, which is no demand of the operator.
    default: usize,
    /// Descriptors of each.
    cost: usize,
    /// The share's part where there are too few for all.
    weight: usize,
}

/// The operator's figures, or lower ones.
#[derive(Debug, Clone)]
pub(super) struct Divided {
    pub(super) shares: ShareConfig,
    pub(super) durable: DurableConfig,
    /// The figures that were lowered, and the remedy.
    pub(super) lowered: Option<String>,
}

/// Divides the descriptors that this process may have.
pub(super) fn divide(shares: &ShareConfig, durable: &DurableConfig) -> Result<Divided, DaemonError> {
    let limit = rlimit::descriptors().map_err(|error| DaemonError::Internal(error.to_string()))?;
    divide_limit(usize::try_from(limit).unwrap_or(usize::MAX), shares, durable)
}

fn divide_limit(limit: usize, shares: &ShareConfig, durable: &DurableConfig) -> Result<Divided, DaemonError> {
    if limit < FEWEST {
        return Err(DaemonError::FewDescriptors { limit, needed: FEWEST });
    }
    let (mut shares, mut durable) = (shares.clone(), durable.clone());
    let defaults = (ShareConfig::default(), DurableConfig::default());
    let (mut connections, mut http) = (shares.connections.most, shares.http_connections.most);
    let mut sessions = shares.sessions.most;
    let part = |setting, most, default, (cost, weight)| Part { setting, most, default, cost, weight };
    let mut parts = [
        part("shares.connections", &mut connections, defaults.0.connections.most, (1, 1)),
        part("shares.http_connections", &mut http, defaults.0.http_connections.most, (1, 1)),
        part("shares.sessions", &mut sessions, defaults.0.sessions.most, (OF_A_SESSION, 4)),
        part("durable", &mut durable.workers, defaults.1.workers, (OF_A_SESSION, 1)),
    ];
    // Shares that need least for their weight come first: the others get what these leave.
    parts.sort_by_key(|part| part.most.saturating_mul(part.cost) / part.weight);
    let mut left = limit - (limit / SPARE_PART).clamp(SPARE_LEAST, SPARE_MOST);
    let mut weights: usize = parts.iter().map(|part| part.weight).sum();
    let mut lowered = Vec::new();
    for Part { setting, most, default, cost, weight } in parts {
        let wanted = *most;
        *most = wanted.min(left / weights * weight / cost).max(1);
        left = left.saturating_sub(*most * cost);
        weights -= weight;
        if *most < wanted {
            let most = *most;
            if wanted == default {
                tracing::info!(setting, most, wanted, limit, advice = ADVICE);
            } else {
                tracing::warn!(setting, most, wanted, limit, advice = ADVICE);
            }
            lowered.push(format!("{setting} {most} of {wanted}"));
        }
    }
    for (limits, most) in [
        (&mut shares.connections, connections),
        (&mut shares.http_connections, http),
        (&mut shares.sessions, sessions),
    ] {
        lower(limits, most);
    }
    let lowered = (!lowered.is_empty())
        .then(|| format!("{limit} descriptors are too few for all: {}; {ADVICE}", lowered.join(", ")));
    Ok(Divided { shares, durable, lowered })
}

/// Lowers all figures of a share; administrators keep a reserve.
fn lower(limits: &mut ShareLimits, most: usize) {
    if most < limits.most {
        let reserved = limits.reserved.min((most / 8).max(1)).min(most - 1);
        *limits = ShareLimits { most, per_owner: limits.per_owner.min(most), reserved };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divided(limit: usize, configured: &ShareConfig) -> (ShareConfig, usize, Option<String>) {
        let divided = divide_limit(limit, configured, &DurableConfig::default()).expect("enough to start");
        (divided.shares, divided.durable.workers, divided.lowered)
    }

    #[test]
    fn what_owners_share_never_takes_all_descriptors_and_nothing_is_lowered_without_need() {
        let defaults = ShareConfig::default();
        for limit in [FEWEST, 200, 256, 1_000, 1_024, 4_096, 10_000, 20_000, 65_536, usize::MAX] {
            let (shares, workers, lowered) = divided(limit, &defaults);
            let of_workers = (shares.sessions.most + workers) * OF_A_SESSION;
            let taken = shares.connections.most + shares.http_connections.most + of_workers;
            assert!(limit - taken >= SPARE_LEAST, "{limit}: {taken} are taken");
            assert_eq!(lowered.is_none(), shares == defaults && workers == DurableConfig::default().workers);
            assert_eq!(lowered.is_none(), limit >= 20_000, "{limit}: {lowered:?}");
            for limits in [shares.connections, shares.http_connections, shares.sessions] {
                assert!((1..limits.most).contains(&limits.reserved), "{limit}: {limits:?}");
                assert!(limits.per_owner <= limits.most);
            }
        }
    }

    #[test]
    fn what_some_do_not_need_is_for_the_others_and_each_figure_that_is_lowered_is_named() {
        let few = ShareLimits::at_most(10);
        let configured = ShareConfig { connections: few, http_connections: few, ..ShareConfig::default() };
        let (shares, _, lowered) = divided(1_024, &configured);
        assert_eq!((shares.connections, shares.http_connections), (few, few));
        let (others, _, _) = divided(1_024, &ShareConfig::default());
        assert!(shares.sessions.most > others.sessions.most, "{shares:?}, {others:?}");
        let lowered = lowered.expect("sessions and workers");
        let most = shares.sessions.most;
        assert!(lowered.contains(&format!("shares.sessions {most} of 1000")), "{lowered}");
        assert!(lowered.contains("durable ") && lowered.contains("LimitNOFILE="), "{lowered}");
        assert!(!lowered.contains("connections"), "{lowered}");
    }

    #[test]
    fn a_daemon_with_too_few_descriptors_to_serve_does_not_start() {
        let refused = divide_limit(FEWEST - 1, &ShareConfig::default(), &DurableConfig::default());
        let error = refused.expect_err("too few");
        assert!(error.to_string().contains("127") && error.to_string().contains("128"), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("LimitNOFILE=")), "{error}");
    }
}
