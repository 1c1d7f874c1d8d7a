//! Owns the tags of locales: their canonical form, which of a script's locales has data, and conversions of case.

use super::languages::LANGUAGES;
use super::lists::NUMBERING_SYSTEMS;
use icu_casemap::CaseMapper;
use icu_locale::{LanguageIdentifier, Locale, LocaleCanonicalizer, LocaleExpander};

/// The locale of scripts that name none.
const DEFAULT: &str = "en-US";

/// The canonical form of a tag; `None` if it is not well formed.
pub fn canonical(tag: &str) -> Option<String> {
    let mut locale: Locale = tag.parse().ok()?;
    LocaleCanonicalizer::new_extended().canonicalize(&mut locale);
    Some(locale.to_string())
}

/// The tag with the subtags that it implies, or without those that are implied.
pub fn likely(tag: &str, more: bool) -> Option<String> {
    let mut locale: Locale = tag.parse().ok()?;
    let expander = LocaleExpander::new_extended();
    if more {
        expander.maximize(&mut locale.id);
    } else {
        expander.minimize(&mut locale.id);
    }
    Some(locale.to_string())
}

/// A canonical tag in its parts: the name, and the keywords of its `u` extension.
pub fn split_tag(tag: &str) -> (String, Vec<(String, String)>) {
    let tag = tag.split_once("-x-").map_or(tag, |(tag, _)| tag);
    let (name, extension) = tag.split_once("-u-").map_or((tag, None), |(name, rest)| (name, Some(rest)));
    // Other extensions begin with a subtag of one character.
    let mut end = 0;
    for (index, part) in name.split('-').enumerate() {
        if index > 0 && part.len() == 1 {
            break;
        }
        end += part.len() + usize::from(index > 0);
    }
    let mut keywords: Vec<(String, String)> = Vec::new();
    for part in extension.into_iter().flat_map(|extension| extension.split('-')) {
        match (part.len(), keywords.last_mut()) {
            (1, _) => break,
            (2, _) => {
                keywords.retain(|(key, _)| key != part);
                keywords.push((part.to_owned(), String::new()));
            }
            (_, Some((_, value))) => {
                if !value.is_empty() {
                    value.push('-');
                }
                value.push_str(part);
            }
            (_, None) => {}
        }
    }
    (name[..end].to_owned(), keywords)
}

/// Whether there are data for the language of a canonical tag.
pub fn is_supported(tag: &str) -> bool {
    LANGUAGES.contains(&tag.split('-').next().unwrap_or_default())
}

/// A keyword of a tag that matters to a formatter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keyword {
    /// `nu`, `hc`, `ca`, `co`, `kf` or `kn`
    pub key: String,
    /// The value that an option gives it
    pub option: Option<String>,
    /// The tag's own value counts
    pub from_tag: bool,
}

impl Keyword {
    /// Reads `key`, `key=value of the option`, or `key!` where the tag's value does not count.
    pub fn parse(text: &str) -> Self {
        let (key, option) = text.split_once('=').map_or((text, None), |(key, value)| (key, Some(value)));
        let bare = key.strip_suffix('!');
        Self {
            key: bare.unwrap_or(key).to_owned(),
            option: option.map(str::to_owned),
            from_tag: bare.is_none(),
        }
    }

    /// Whether a tag may have this value.
    fn allows(&self, value: &str) -> bool {
        self.from_tag
            && match self.key.as_str() {
                "nu" => NUMBERING_SYSTEMS.contains(&value),
                "hc" => ["h11", "h12", "h23", "h24"].contains(&value),
                "co" => value != "search" && value != "standard",
                "kf" => ["upper", "lower", "false"].contains(&value),
                "kn" => ["", "true", "false"].contains(&value),
                _ => true,
            }
    }
}

/// The meaning of a script's locales and options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedLocale {
    /// As `resolvedOptions` has it
    pub locale: String,
    /// The tag with the keywords of options, for a formatter
    pub tag: String,
    /// The keywords that have a value
    pub values: Vec<(String, String)>,
}

/// Appends a keyword to an extension.
fn push_keyword(extension: &mut String, key: &str, value: &str) {
    for part in [key, value].iter().filter(|part| !part.is_empty()) {
        extension.push('-');
        extension.push_str(part);
    }
}

/// The first of these canonical tags that has data, or `en-US`, with the keywords that matter.
pub fn resolve(tags: &[String], keywords: &[Keyword]) -> ResolvedLocale {
    let chosen = tags.iter().find(|tag| is_supported(tag)).map_or(DEFAULT, String::as_str);
    let (name, of_tag) = split_tag(chosen);
    let mut keywords: Vec<&Keyword> = keywords.iter().collect();
    keywords.sort_by(|one, other| one.key.cmp(&other.key));
    let (mut shown, mut used, mut values) = (String::new(), String::new(), Vec::new());
    for keyword in keywords {
        let given = of_tag.iter().find(|(key, _)| *key == keyword.key).map(|(_, value)| value.as_str());
        let from_tag = given.filter(|value| keyword.allows(value));
        let Some(value) = keyword.option.as_deref().or(from_tag) else { continue };
        let key = &keyword.key;
        push_keyword(&mut used, key, if value == "true" { "" } else { value });
        if let Some(given) = from_tag
            && keyword.option.as_deref().is_none_or(|option| option == given)
        {
            push_keyword(&mut shown, key, given);
        }
        values.push((key.clone(), value.to_owned()));
    }
    let with = |extension: &str| {
        if extension.is_empty() { name.clone() } else { format!("{name}-u{extension}") }
    };
    ResolvedLocale { locale: with(&shown), tag: with(&used), values }
}

/// A part of a canonical tag by the name of `Intl.Locale`'s getter; `None` if the tag has none.
pub fn locale_part(tag: &str, part: &str) -> Option<String> {
    let (name, keywords) = split_tag(tag);
    let subtags = || name.split('-').skip(1).map(str::to_owned);
    let of_keyword =
        |key: &str| keywords.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone());
    match part {
        "language" => name.split('-').next().map(str::to_owned),
        "script" => subtags().find(|part| is_script(part)),
        "region" => subtags().find(|part| is_region(part)),
        "calendar" => of_keyword("ca"),
        "collation" => of_keyword("co"),
        "hourCycle" => of_keyword("hc"),
        "caseFirst" => of_keyword("kf"),
        "numeric" => of_keyword("kn"),
        "numberingSystem" => of_keyword("nu"),
        _ => Some(name),
    }
}

fn is_script(part: &str) -> bool {
    part.len() == 4 && part.bytes().all(|letter| letter.is_ascii_alphabetic())
}

fn is_region(part: &str) -> bool {
    part.len() == 2 && part.bytes().all(|letter| letter.is_ascii_alphabetic())
        || part.len() == 3 && part.bytes().all(|digit| digit.is_ascii_digit())
}

fn is_language(part: &str) -> bool {
    matches!(part.len(), 2 | 3 | 5..=8) && part.bytes().all(|letter| letter.is_ascii_alphabetic())
}

/// A canonical tag with other subtags (language, script, region) and keywords (key and value); `None` if one of them is not well
/// formed.
pub fn locale_with(
    tag: &str,
    [language, script, region]: [Option<&str>; 3],
    changed: &[(&str, &str)],
) -> Option<String> {
    let given = [(language, is_language as fn(&str) -> bool), (script, is_script), (region, is_region)];
    if given.iter().any(|(given, is_valid)| given.is_some_and(|given| !is_valid(given))) {
        return None;
    }
    // Whatever is not changed stays: variants, attributes, other extensions, private use.
    let mut locale: Locale = tag.parse().ok()?;
    if let Some(language) = language {
        locale.id.language = language.parse().ok()?;
    }
    if let Some(script) = script {
        locale.id.script = Some(script.parse().ok()?);
    }
    if let Some(region) = region {
        locale.id.region = Some(region.parse().ok()?);
    }
    for (key, value) in changed {
        locale.extensions.unicode.keywords.set(key.parse().ok()?, value.parse().ok()?);
    }
    canonical(&locale.to_string())
}

/// The name of a language, region or script code in its canonical form; `None` if it is not well formed.
pub fn canonical_code(kind: &str, code: &str) -> Option<String> {
    match kind {
        "region" => is_region(code).then(|| code.to_ascii_uppercase()),
        "script" => is_script(code).then(|| code[..1].to_ascii_uppercase() + &code[1..].to_ascii_lowercase()),
        _ => canonical(code),
    }
}

/// Languages with rules of case of their own.
pub fn has_own_case(tag: &str) -> bool {
    ["az", "el", "hy", "lt", "nl", "tr"].contains(&tag.split('-').next().unwrap_or_default())
}

/// A text in upper or lower case by the rules of a locale's language. Halves of surrogate pairs stay as they are.
pub fn change_case(tag: &str, upper: bool, units: &[u16]) -> Vec<u16> {
    let language = tag.parse::<Locale>().map_or(LanguageIdentifier::UNKNOWN, |locale| locale.id);
    let mapper = CaseMapper::new();
    let change = |text: &str, changed: &mut Vec<u16>| {
        let text = if upper {
            mapper.uppercase_to_string(text, &language)
        } else {
            mapper.lowercase_to_string(text, &language)
        };
        changed.extend(text.encode_utf16());
    };
    let (mut changed, mut text) = (Vec::with_capacity(units.len()), String::new());
    for one in char::decode_utf16(units.iter().copied()) {
        match one {
            Ok(character) => text.push(character),
            Err(half) => {
                change(&std::mem::take(&mut text), &mut changed);
                changed.push(half.unpaired_surrogate());
            }
        }
    }
    change(&text, &mut changed);
    changed
}

#[cfg(test)]
mod tests {
    use super::{Keyword, locale_with, resolve, split_tag};

    #[test]
    fn what_is_not_changed_of_a_tag_stays() {
        let in_austria = |tag| locale_with(tag, [None, None, Some("AT")], &[("nu", "arab")]);
        for (tag, expected) in [
            ("de", "de-AT-u-nu-arab"),
            ("de-DE-1996-x-foo", "de-AT-1996-u-nu-arab-x-foo"),
            ("en-t-de-u-ca-gregory", "en-AT-t-de-u-ca-gregory-nu-arab"),
            ("en-a-bbb-u-attr-nu-latn-x-1", "en-AT-a-bbb-u-attr-nu-arab-x-1"),
        ] {
            assert_eq!(in_austria(tag).as_deref(), Some(expected));
        }
        assert_eq!(locale_with("de", [None, Some("Latin"), None], &[]), None);
        assert_eq!(locale_with("de", [None, None, None], &[("ca", "x")]), None);
        assert_eq!(locale_with("de", [None, None, None], &[("kn", "true")]).as_deref(), Some("de-u-kn"));
    }

    #[test]
    fn tags_are_split_into_their_name_and_keywords() {
        let parts = |tag| {
            let (name, keywords) = split_tag(tag);
            let keywords: Vec<String> =
                keywords.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("{name} {}", keywords.join(" "))
        };
        assert_eq!(parts("de"), "de ");
        assert_eq!(parts("zh-Hant-TW-u-kn-nu-latn-x-a"), "zh-Hant-TW kn= nu=latn");
        assert_eq!(parts("sl-rozaj-t-de-m0-und-u-attr-ca-islamic-civil"), "sl-rozaj ca=islamic-civil");
        assert_eq!(parts("en-x-u-nu-thai"), "en ");
    }

    #[test]
    fn options_replace_keywords_and_are_not_shown() {
        let resolved = |tags: &[&str], keywords: &str| {
            let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
            let keywords: Vec<Keyword> = keywords.split_whitespace().map(Keyword::parse).collect();
            let found = resolve(&tags, &keywords);
            format!("{} {} {:?}", found.locale, found.tag, found.values)
        };
        assert_eq!(resolved(&[], "nu"), "en-US en-US []");
        assert_eq!(resolved(&["xx", "de-u-nu-thai"], "nu"), "de-u-nu-thai de-u-nu-thai [(\"nu\", \"thai\")]");
        assert_eq!(resolved(&["de-u-nu-thai"], "nu=arab"), "de de-u-nu-arab [(\"nu\", \"arab\")]");
        assert_eq!(resolved(&["de-u-kn"], "kn=true"), "de de-u-kn [(\"kn\", \"true\")]");
        assert_eq!(resolved(&["de-u-hc-h12"], "hc!"), "de de []");
        assert_eq!(resolved(&["de-u-co-search-nu-xxxx"], "nu co"), "de de []");
    }
}
