//! Why a holder gets no more, in words, and what to do about it.

use super::{Holder, ShareLimits};
use std::fmt;
use vm_system_protocol::control::{ErrorCode, OpError};

/// Why there is none: a limit of all, or the owner's share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareRefusal {
    pub(super) holder: Holder,
    pub(super) held: usize,
    /// Whether the owner's share is full, and not just all of them.
    pub(super) own: bool,
    pub(super) limits: ShareLimits,
    pub(super) what: &'static str,
    pub(super) setting: &'static str,
    /// Of a request for several: how many, and how many of them there are.
    pub(super) several: Option<(usize, usize)>,
}

impl fmt::Display for ShareRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((requested, available)) = self.several {
            write!(
                f,
                "{requested} {} were requested, of which {available} are available: with them ",
                self.what
            )?;
        }
        let Self { holder, held, what, limits: ShareLimits { most, per_owner, .. }, .. } = self;
        match self.own {
            true if held >= per_owner => {
                write!(f, "{holder} has {held} {what}, the most that one owner may have")
            }
            true => write!(f, "{holder} has {held} of {most} {what}: an owner leaves as many free as it has"),
            false => write!(f, "all of the {most} {what} are in use"),
        }
    }
}

impl std::error::Error for ShareRefusal {}

impl ShareRefusal {
    /// The refusal of a request for several, of which there are only some.
    #[must_use]
    pub fn of_several(self, requested: usize, available: usize) -> Self {
        Self { several: (requested > 1).then_some((requested, available)), ..self }
    }

    /// The remedy; names the operator's setting.
    pub fn hint(&self) -> String {
        let (own, setting) = (self.own && self.held >= self.limits.per_owner, self.setting);
        let part = if own { "per_owner" } else { "most" };
        let first = if self.own { "end some of yours" } else { "try again later" };
        // A daemon with few descriptors has lowered its figures.
        let limit = if part == "most" { " or the limit of descriptors (LimitNOFILE=)" } else { "" };
        format!("{first}, or have the operator raise `{part}` of [shares.{setting}]{limit}")
    }
}

impl From<ShareRefusal> for OpError {
    fn from(refusal: ShareRefusal) -> Self {
        Self::new(ErrorCode::CapacityExceeded, refusal.to_string()).with_hint(refusal.hint())
    }
}
