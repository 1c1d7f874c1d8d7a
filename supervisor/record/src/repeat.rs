//! Facts that are stored of an execution beyond its record, so that its input can be repeated in another session. No I/O.

/// Facts about an execution, as bits of one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RepeatFacts(u32);

impl RepeatFacts {
    /// It had arguments (`process.argv`), which are not recorded.
    pub const ARGV: Self = Self(1);
    /// The client sent its source, which is not recorded: the path is only a name.
    pub const SENT_SOURCE: Self = Self(1 << 1);
    /// An input of a shell, in which `_` is the value of the last one.
    pub const INTERACTIVE: Self = Self(1 << 2);
    /// An input in TypeScript.
    pub const TYPESCRIPT: Self = Self(1 << 3);
    /// It changed files.
    pub const FILES: Self = Self(1 << 4);
    /// It started commands.
    pub const EXEC: Self = Self(1 << 5);
    /// It used databases.
    pub const DATABASE: Self = Self(1 << 6);
    /// It made HTTP requests other than GET, HEAD and OPTIONS.
    pub const HTTP: Self = Self(1 << 7);
    /// A write of its record was lost, so that its effects are not known.
    pub const UNKNOWN: Self = Self(1 << 8);

    /// Each kind of effect with its name.
    const EFFECTS: [(Self, &'static str); 5] = [
        (Self::FILES, "files"),
        (Self::EXEC, "exec"),
        (Self::DATABASE, "database"),
        (Self::HTTP, "http"),
        (Self::UNKNOWN, "unknown"),
    ];

    /// The stored form.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// From the stored form; bits of later versions are kept.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether it has all of these facts.
    pub const fn has(self, facts: Self) -> bool {
        self.0 & facts.0 == facts.0
    }

    /// Adds facts; returns those that are new.
    #[allow(clippy::return_self_not_must_use, reason = "most callers need no list of what is new")]
    pub fn add(&mut self, facts: Self) -> Self {
        let new = Self(facts.0 & !self.0);
        self.0 |= facts.0;
        new
    }

    /// The names of the effects outside of the session.
    pub fn effects(self) -> Vec<&'static str> {
        Self::EFFECTS.iter().filter(|(fact, _)| self.has(*fact)).map(|(_, name)| *name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::RepeatFacts;

    #[test]
    fn facts_are_added_once_and_only_effects_have_names() {
        let mut facts = RepeatFacts::default();
        assert!(facts.is_empty());
        assert_eq!(facts.add(RepeatFacts::FILES), RepeatFacts::FILES);
        assert!(facts.add(RepeatFacts::FILES).is_empty());
        facts.add(RepeatFacts::ARGV);
        facts.add(RepeatFacts::HTTP);
        assert_eq!(facts.effects(), ["files", "http"]);
        assert!(facts.has(RepeatFacts::ARGV) && !facts.has(RepeatFacts::EXEC));
        assert_eq!(RepeatFacts::from_bits(facts.bits()), facts);
    }
}
