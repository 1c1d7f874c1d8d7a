//! Lists of the daemon, part by part: `--limit` and `--all`, and the filters of several of them.

use crate::error::CliError;
use crate::output::notice;
use crate::parse;
use vm_system_protocol::control::Period;
use vm_system_protocol::time::Timestamp;

/// Most elements of one request; the supervisor sends no more at once.
const PART: u32 = 1_000;

/// Cuts events to `--limit`, of which one more was read, and says so; 0 means all.
pub(crate) fn cut_events<T>(events: &mut Vec<T>, limit: usize, seq: impl Fn(&T) -> u64) {
    if limit > 0 && events.len() > limit {
        events.truncate(limit);
        let after = events.last().map_or(0, seq);
        notice(&format!("There are more than {limit}: `--after-seq {after}` or `--limit 0` shows them."));
    }
}

/// How much of a list is shown.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct ListArgs {
    #[command(flatten)]
    limit: LimitArgs,
    /// All of them, as `--limit 0`
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

impl ListArgs {
    /// The elements; `part` requests at most so many behind an element.
    pub(crate) async fn collect<T>(
        self,
        part: impl AsyncFn(Option<&T>, u32) -> Result<Vec<T>, CliError>,
    ) -> Result<Vec<T>, CliError> {
        let limit = if self.all { 0 } else { self.limit.limit };
        LimitArgs { limit }.collect("--all", part).await
    }
}

/// How much of a list is shown.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct LimitArgs {
    /// At most this many, 0: all of them; a note on stderr says if there are more
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
}

impl LimitArgs {
    /// The elements; `part` requests at most so many behind an element. With `everything` all of them are shown.
    pub(crate) async fn collect<T>(
        self,
        everything: &str,
        part: impl AsyncFn(Option<&T>, u32) -> Result<Vec<T>, CliError>,
    ) -> Result<Vec<T>, CliError> {
        let limit = if self.limit == 0 { usize::MAX } else { self.limit as usize };
        let mut elements = Vec::new();
        // One more than is shown, to know whether there are more. A part may be shorter than requested: only an empty one is
        // the end.
        while elements.len() <= limit {
            let wanted = limit.saturating_sub(elements.len()).saturating_add(1);
            let wanted = u32::try_from(wanted).unwrap_or(u32::MAX).min(PART);
            let next = part(elements.last(), wanted).await?;
            if next.is_empty() {
                break;
            }
            elements.extend(next);
        }
        if elements.len() > limit {
            elements.truncate(limit);
            notice(&format!("There are more than {limit}: `--limit N` or `{everything}` shows them."));
        }
        Ok(elements)
    }
}

/// Which elements are shown, by time.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct PeriodArgs {
    /// Only from this time on: a point in time (RFC 3339), or how long ago, such as 2h
    #[arg(long, value_name = "TIME", value_parser = parse::past)]
    since: Option<Timestamp>,
    /// Only before this time
    #[arg(long, value_name = "TIME", value_parser = parse::past)]
    until: Option<Timestamp>,
}

impl PeriodArgs {
    pub(crate) fn period(self) -> Period {
        Period { since: self.since, until: self.until }
    }
}

/// Whose elements are shown.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct OwnerArgs {
    /// For administrators: only what belongs to this owner: `uid:1000`, or the name of a token
    #[arg(long, value_name = "OWNER")]
    pub(crate) owner: Option<String>,
}
