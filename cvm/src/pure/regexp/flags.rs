//! The flags of a regular expression, ECMA-262 22.2.6.4 and 22.2.3.3.

use super::super::units::Units;

/// The flags that are set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // one per letter
pub(crate) struct Flags {
    /// `d`
    pub has_indices: bool,
    /// `g`
    pub global: bool,
    /// `i`
    pub ignore_case: bool,
    /// `m`
    pub multiline: bool,
    /// `s`
    pub dot_all: bool,
    /// `u`
    pub unicode: bool,
    /// `v`
    pub unicode_sets: bool,
    /// `y`
    pub sticky: bool,
}

impl Flags {
    /// The flags of the letters; `None` for an unknown or repeated letter, or `u` together with `v`.
    pub(crate) fn parse<U: Units + ?Sized>(letters: &U) -> Option<Flags> {
        let mut flags = Flags::default();
        for index in 0..letters.count() {
            let slot = match u8::try_from(letters.unit(index)).ok()? {
                b'd' => &mut flags.has_indices,
                b'g' => &mut flags.global,
                b'i' => &mut flags.ignore_case,
                b'm' => &mut flags.multiline,
                b's' => &mut flags.dot_all,
                b'u' => &mut flags.unicode,
                b'v' => &mut flags.unicode_sets,
                b'y' => &mut flags.sticky,
                _ => return None,
            };
            if std::mem::replace(slot, true) {
                return None;
            }
        }
        (!(flags.unicode && flags.unicode_sets)).then_some(flags)
    }

    /// True if the pattern and the text are read as code points and not as units (`u` or `v`).
    pub(crate) fn full_unicode(self) -> bool {
        self.unicode || self.unicode_sets
    }
}

#[cfg(test)]
mod tests {
    use super::Flags;

    #[test]
    fn letters_come_once_and_u_excludes_v() {
        assert!(Flags::parse(b"dgimsuy".as_slice()).is_some());
        assert!(Flags::parse(b"v".as_slice()).is_some_and(Flags::full_unicode));
        for bad in ["gg", "uv", "x", "G"] {
            assert_eq!(Flags::parse(bad.as_bytes()), None);
        }
    }
}
