//! Counts in texts for people.

/// `1 call`, `2 calls`, `0 properties`: a number with the plural of its noun; `1 more call` with words before the noun.
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{count} {stem}ies"),
        _ => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_no_plural() {
        let texts = [counted(1_u32, "call"), counted(0_u64, "more call"), counted(2_usize, "input")];
        assert_eq!(texts, ["1 call", "0 more calls", "2 inputs"]);
        let texts = [counted(1_u8, "property"), counted(2_u8, "property"), counted(2_u8, "day")];
        assert_eq!(texts, ["1 property", "2 properties", "2 days"]);
    }
}
