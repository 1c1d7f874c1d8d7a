//! Unicode properties of `\p{…}`: code point sets and sets of strings, ECMA-262 22.2.1.5 and tables 67 to 71.
//!
//! The tables are those of ICU4X; names were checked by the pattern parser, so this build has no data for a name that is not
//! found here.

use super::set::CodeSet;
use icu_properties::props::{BasicEmoji, GeneralCategory, GeneralCategoryGroup, Script};
use icu_properties::script::ScriptWithExtensions;
use icu_properties::{CodePointMapData, CodePointSetData, EmojiSetData, PropertyParser};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Cached sets by `(name, value)`. Never evicted: the number of properties is fixed.
type Cache = Mutex<BTreeMap<(String, String), Arc<CodeSet>>>;

/// The code points with `name`, or with `name=value`. `None` for names without data.
pub(crate) fn property(name: &str, value: Option<&str>) -> Option<Arc<CodeSet>> {
    static CACHE: OnceLock<Cache> = OnceLock::new();
    let cache = CACHE.get_or_init(Cache::default);
    let key = (name.to_owned(), value.unwrap_or_default().to_owned());
    let known = cache.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
    if known.is_some() {
        return known;
    }
    let set = Arc::new(make(name, value)?);
    cache.lock().unwrap_or_else(PoisonError::into_inner).insert(key, Arc::clone(&set));
    Some(set)
}

fn make(name: &str, value: Option<&str>) -> Option<CodeSet> {
    match (name, value) {
        // The one alias of ECMA-262 that ICU4X does not list.
        ("space", None) => make("White_Space", None),
        ("General_Category" | "gc", Some(value)) => general_category(value),
        ("Script" | "sc", Some(value)) => {
            let script = PropertyParser::<Script>::new().get_strict(value)?;
            Some(collect(CodePointMapData::<Script>::new().iter_ranges_for_value(script)))
        }
        ("Script_Extensions" | "scx", Some(value)) => {
            let script = PropertyParser::<Script>::new().get_strict(value)?;
            Some(collect(ScriptWithExtensions::new().get_script_extensions_ranges(script)))
        }
        (_, Some(_)) => None,
        ("ASCII", None) => Some(CodeSet::new(vec![(0, 0x7F)])),
        ("Any", None) => Some(CodeSet::new(vec![(0, super::set::LAST)])),
        ("Assigned", None) => Some(general_category("Unassigned")?.complement()),
        (name, None) => match CodePointSetData::new_for_ecma262(name.as_bytes()) {
            Some(set) => Some(collect(set.iter_ranges())),
            None => general_category(name),
        },
    }
}

fn general_category(value: &str) -> Option<CodeSet> {
    let group = PropertyParser::<GeneralCategoryGroup>::new().get_strict(value)?;
    Some(collect(CodePointMapData::<GeneralCategory>::new().iter_ranges_for_group(group)))
}

fn collect(ranges: impl Iterator<Item = std::ops::RangeInclusive<u32>>) -> CodeSet {
    CodeSet::new(ranges.map(|range| (*range.start(), *range.end())).collect())
}

/// The flags that are recommended for general interchange, as pairs of region letters (`RGI_Emoji_Flag_Sequence`).
const FLAG_REGIONS: &str = "\
    ACADAEAFAGAIALAMAOAQARASATAUAWAXAZBABBBDBEBFBGBHBIBJBLBMBNBOBQBRBSBTBVBWBYBZCACCCDCFCGCHCICKCLCMCNCO\
    CPCQCRCUCVCWCXCYCZDEDGDJDKDMDODZEAECEEEGEHERESETEUFIFJFKFMFOFRGAGBGDGEGFGGGHGIGLGMGNGPGQGRGSGTGUGWGY\
    HKHMHNHRHTHUICIDIEILIMINIOIQIRISITJEJMJOJPKEKGKHKIKMKNKPKRKWKYKZLALBLCLILKLRLSLTLULVLYMAMCMDMEMFMGMH\
    MKMLMMMNMOMPMQMRMSMTMUMVMWMXMYMZNANCNENFNGNINLNONPNRNUNZOMPAPEPFPGPHPKPLPMPNPRPSPTPWPYQARERORSRURWSA\
    SBSCSDSESGSHSISJSKSLSMSNSOSRSSSTSVSXSYSZTATCTDTFTGTHTJTKTLTMTNTOTRTTTVTWTZUAUGUMUNUSUYUZVAVCVEVGVIVN\
    VUWFWSXKYEYTZAZMZW";

/// The strings, each a sequence of code points, of a property of strings (ECMA-262 table 69). Single code points are
/// strings of length one. `None` for a property for which this build has no data.
pub(super) fn strings(name: &str) -> Option<Vec<Vec<u32>>> {
    Some(match name {
        "Basic_Emoji" => basic_emoji(),
        "Emoji_Keycap_Sequence" => {
            "0123456789#*".chars().map(|key| vec![u32::from(key), 0xFE0F, 0x20E3]).collect()
        }
        "RGI_Emoji_Modifier_Sequence" => {
            let bases = property("Emoji_Modifier_Base", None)?;
            // A family may have skin tones in theory (it is a base), but no such sequence is recommended.
            let members =
                bases.ranges().iter().flat_map(|range| range.0..=range.1).filter(|base| *base != 0x1F46A);
            members.flat_map(|base| (0x1F3FB..=0x1F3FF).map(move |tone| vec![base, tone])).collect()
        }
        "RGI_Emoji_Flag_Sequence" => {
            let letter = |byte: u8| 0x1F1E6 + u32::from(byte - b'A');
            FLAG_REGIONS
                .as_bytes()
                .chunks(2)
                .map(|pair| pair.iter().map(|byte| letter(*byte)).collect())
                .collect()
        }
        "RGI_Emoji_Tag_Sequence" => ["gbeng", "gbsct", "gbwls"].into_iter().map(tag_sequence).collect(),
        _ => return None,
    })
}

/// A black flag followed by the tag characters of a region and the end tag.
fn tag_sequence(region: &str) -> Vec<u32> {
    let tags = region.bytes().map(|byte| 0xE_0000 + u32::from(byte));
    std::iter::once(0x1F3F4).chain(tags).chain([0xE_007F]).collect()
}

fn basic_emoji() -> Vec<Vec<u32>> {
    let set = EmojiSetData::new::<BasicEmoji>();
    let Some(emoji) = property("Emoji", None) else { return Vec::new() };
    let mut found = Vec::new();
    for code_point in emoji.ranges().iter().flat_map(|range| range.0..=range.1) {
        let Some(letter) = char::from_u32(code_point) else { continue };
        if set.contains(letter) {
            found.push(vec![code_point]);
        }
        if set.contains_str(&format!("{letter}\u{FE0F}")) {
            found.push(vec![code_point, 0xFE0F]);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_have_their_known_members() {
        for (name, value, member, stranger) in [
            ("L", None, 0x61, 0x30),
            ("Lowercase_Letter", None, 0x61, 0x41),
            ("gc", Some("Lu"), 0x41, 0x61),
            ("Script", Some("Greek"), 0x3B1, 0x61),
            ("sc", Some("Grek"), 0x3B1, 0x61),
            ("scx", Some("Deva"), 0x1CD0, 0x61),
            ("Alphabetic", None, 0x61, 0x30),
            ("ASCII", None, 0x7F, 0x80),
            ("Any", None, 0x10_FFFF, 0x11_0000),
            ("Assigned", None, 0x61, 0x378),
            ("Emoji_Presentation", None, 0x1F600, 0x23),
            ("ID_Start", None, 0x61, 0x30),
            ("Cs", None, 0xD800, 0x61),
            ("Changes_When_NFKC_Casefolded", None, 0x41, 0x61),
        ] {
            let set = property(name, value).unwrap_or_default();
            assert!(set.contains(member), "{name} {value:?}");
            assert!(!set.contains(stranger), "{name} {value:?}");
        }
        assert!(property("Nonsense", None).is_none() && property("sc", Some("Nonsense")).is_none());
    }

    #[test]
    fn properties_of_strings() {
        let count = |name: &str| strings(name).map(|all| all.len());
        assert_eq!(count("Emoji_Keycap_Sequence"), Some(12));
        assert_eq!(count("RGI_Emoji_Flag_Sequence"), Some(259));
        assert_eq!(count("RGI_Emoji_Tag_Sequence"), Some(3));
        assert_eq!(count("RGI_Emoji_Modifier_Sequence"), Some(665));
        assert_eq!(count("Nonsense"), None);
    }
}
