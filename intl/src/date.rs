//! Owns dates and times as text: the pattern of a locale for the fields that a script requests, with the widths that it requests.

use super::data::FormatData;
use super::zone::TimeZoneRules;
use super::{FormatOptions, IntlError, TextPart, parsed, split_tag};
use icu_calendar::types::RataDie;
use icu_calendar::{Date, Gregorian};
use icu_datetime::fieldsets::builder::{DateFields, FieldSetBuilder, ZoneStyle};
use icu_datetime::fieldsets::enums::{CompositeDateTimeFieldSet, ZoneFieldSet};
use icu_datetime::input::{DateTime, Time, TimeZone, UtcOffset};
use icu_datetime::options::{Length, SubsecondDigits, TimePrecision, YearStyle};
use icu_datetime::pattern::{DateTimePattern, FixedCalendarDateTimeNames};
use icu_datetime::preferences::HourCycle;
use icu_datetime::{DateTimeFormatterPreferences, FixedCalendarDateTimeFormatter, NoCalendarFormatter};
use icu_locale::Locale;
use icu_time::zone::IanaParser;
use writeable::{TryWriteable, Writeable};

/// Days from 1 January of the year 1 to 1 January 1970, and one.
const UNIX_DAY: i64 = 719_163;
const DAY_MS: i64 = 86_400_000;

type Names = FixedCalendarDateTimeNames<Gregorian, CompositeDateTimeFieldSet>;

enum Item {
    Literal(String),
    /// One field: the name of its part, and a pattern of it alone.
    Field(&'static str, DateTimePattern),
    /// Seconds with their fraction.
    Seconds(DateTimePattern),
    Zone,
}

/// Writes dates and times by the rules of a locale, in the Gregorian calendar.
pub struct DateFormat {
    items: Vec<Item>,
    names: Names,
    zone: TimeZoneRules,
    /// Names of zones in the locale's language, and the zone by its name in their data.
    zone_text: Option<(NoCalendarFormatter<ZoneFieldSet>, TimeZone)>,
    hour_cycle: Option<&'static str>,
    pattern: String,
}

fn composite(builder: FieldSetBuilder) -> Result<CompositeDateTimeFieldSet, IntlError> {
    builder.build_composite_datetime().map_err(IntlError::data)
}

/// Year, month, day and weekday of a date, if they are a combination that locales have a pattern for.
fn date_fields(wanted: [bool; 4]) -> Option<DateFields> {
    Some(match wanted {
        [true, true, true, true] => DateFields::YMDE,
        [true, true, true, false] => DateFields::YMD,
        [true, true, false, false] => DateFields::YM,
        [true, false, false, false] => DateFields::Y,
        [false, true, true, true] => DateFields::MDE,
        [false, true, true, false] => DateFields::MD,
        [false, true, false, false] => DateFields::M,
        [false, false, true, true] => DateFields::DE,
        [false, false, true, false] => DateFields::D,
        [false, false, false, true] => DateFields::E,
        _ => return None,
    })
}

/// The type of a field's part.
fn kind_of(field: char) -> &'static str {
    match field {
        'G' => "era",
        'y' | 'Y' | 'u' | 'U' | 'r' => "year",
        'M' | 'L' => "month",
        'E' | 'c' | 'e' => "weekday",
        'd' => "day",
        'a' | 'b' | 'B' => "dayPeriod",
        'h' | 'H' | 'k' | 'K' => "hour",
        'm' => "minute",
        's' => "second",
        'S' => "fractionalSecond",
        _ => "unknown",
    }
}

/// The width of a field: as the script requests it, or as the locale's pattern has it.
fn width(kind: &str, count: usize, requested: &str) -> usize {
    match (kind, requested) {
        ("minute" | "second" | "fractionalSecond" | "dayPeriod" | "unknown", _) | (_, "") => count,
        (_, "2-digit") => 2,
        (_, "long") => 4,
        (_, "narrow") => 5,
        (_, "short") => 3,
        // A four-digit year is one of any number of digits.
        ("year", _) => 1,
        (_, _) => count,
    }
}

/// Languages and regions whose numeric dates have two digits for day and month, or for the month only, where a script requests no
/// width; the others have one. The locale data know the widths of the short style only.
const TWO_DIGITS: &str = " af as az fr ga hr hu hy it kk ky lt mn ne pt ro ru sv tk tr uk uz zu en-GB en-AU en-CA en-ZA en-SG es-CL ";
const TWO_DIGIT_MONTHS: &str = " bg lv pl en-NZ ";

/// Digits of day and month.
fn numeric_widths(locale: &Locale) -> (usize, usize) {
    let region = locale.id.region.map(|region| format!(" {}-{region} ", locale.id.language));
    let language = format!(" {} ", locale.id.language);
    let is_in =
        |list: &str| region.as_ref().is_some_and(|region| list.contains(region)) || list.contains(&language);
    match (is_in(TWO_DIGITS), is_in(TWO_DIGIT_MONTHS)) {
        (true, _) => (2, 2),
        (false, true) => (1, 2),
        (false, false) => (1, 1),
    }
}

/// Digits of a numeric field for which a script requests no width.
fn numeric_count(kind: &str, count: usize, options: &FormatOptions, widths: (usize, usize)) -> usize {
    let width = match kind {
        "day" if !matches!(options.text("month"), "" | "numeric" | "2-digit") => return 1,
        "day" => widths.0,
        "month" => widths.1,
        _ => return count,
    };
    let is_full = options.has("year") && options.has("month") && options.has("day");
    if is_full { width } else { count.min(width) }
}

/// Literal text and fields, in order.
enum Token {
    /// Seconds with their fraction, which is one field.
    Seconds(String),
    Literal(String),
    Field(char, usize),
}

fn tokens(pattern: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut quoted = false;
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '\'' {
            if letters.peek() == Some(&'\'') {
                letters.next();
                push_literal(&mut tokens, '\'');
            } else {
                quoted = !quoted;
            }
        } else if letter.is_ascii_alphabetic() && !quoted {
            if letter == 'S' {
                push_fraction(&mut tokens);
                continue;
            }
            if let (Some(Token::Literal(text)), 'h' | 'K') = (tokens.last_mut(), letter)
                && text.ends_with('B')
            {
                // The part of the day, which ICU4X's patterns have as a literal.
                text.pop();
                tokens.push(Token::Field('B', 1));
            }
            match tokens.last_mut() {
                Some(Token::Field(last, count)) if *last == letter => *count += 1,
                _ => tokens.push(Token::Field(letter, 1)),
            }
        } else {
            push_literal(&mut tokens, letter);
        }
    }
    tokens
}

/// Joins the seconds, the separator before this digit of a fraction, and the digit.
fn push_fraction(tokens: &mut Vec<Token>) {
    match tokens.last_mut() {
        Some(Token::Seconds(letters)) => letters.push('S'),
        Some(Token::Literal(_)) => {
            tokens.pop();
            let count = match tokens.pop() {
                Some(Token::Field('s', count)) => count,
                Some(other) => {
                    tokens.push(other);
                    1
                }
                None => 1,
            };
            tokens.push(Token::Seconds(format!("{}.S", "s".repeat(count))));
        }
        _ => tokens.push(Token::Seconds("s.S".to_owned())),
    }
}

fn push_literal(tokens: &mut Vec<Token>, letter: char) {
    match tokens.last_mut() {
        Some(Token::Literal(text)) => text.push(letter),
        _ => tokens.push(Token::Literal(letter.to_string())),
    }
}

fn date_time(local_ms: i64) -> Result<DateTime<Gregorian>, IntlError> {
    let (day, rest) = (local_ms.div_euclid(DAY_MS), local_ms.rem_euclid(DAY_MS));
    let (seconds, nanoseconds) = (rest / 1_000, (rest % 1_000) * 1_000_000);
    let time = Time::try_new(
        (seconds / 3_600) as u8,
        (seconds / 60 % 60) as u8,
        (seconds % 60) as u8,
        nanoseconds as u32,
    );
    Ok(DateTime {
        date: Date::from_rata_die(RataDie::new(day + UNIX_DAY), Gregorian),
        time: time.map_err(IntlError::data)?,
    })
}

impl DateFormat {
    /// `options`: `dateStyle`, `timeStyle`, or the fields of ECMA-402, `fractionalSecondDigits` and `timeZoneName`; `hourCycle` is
    /// `h11`, `h12`, `h23`, `h24`, or `12` or `24` for the locale's cycle of so many hours. The tag's keywords `ca` and `hc` do not
    /// count.
    pub fn new(tag: &str, options: &FormatOptions, zone: TimeZoneRules) -> Result<Self, IntlError> {
        let locale = &parsed(&without_keywords(tag))?;
        let mut preferences = DateTimeFormatterPreferences::from(locale);
        match options.text("hourCycle") {
            "h11" => preferences.hour_cycle = Some(HourCycle::H11),
            "h12" => preferences.hour_cycle = Some(HourCycle::H12),
            "h23" | "h24" => preferences.hour_cycle = Some(HourCycle::H23),
            "12" => preferences.hour_cycle = Some(HourCycle::Clock12),
            "24" => preferences.hour_cycle = Some(HourCycle::Clock24),
            _ => {}
        }
        let (pattern, zone_style) = pattern(preferences, options)?;
        let mut names = Names::try_new_unstable(&FormatData, preferences).map_err(IntlError::data)?;
        let mut items = Vec::new();
        let mut hour_cycle = None;
        let mut adjusted = String::new();
        for token in tokens(&pattern) {
            match token {
                Token::Seconds(letters) => {
                    adjusted.push_str(&letters);
                    adjusted.push(' ');
                    let pattern = DateTimePattern::try_from_pattern_str(&letters);
                    items.push(Item::Seconds(pattern.map_err(IntlError::data)?));
                }
                Token::Literal(text) => items.push(Item::Literal(text)),
                Token::Field('z', _) => items.push(Item::Zone),
                Token::Field(letter, mut count) => {
                    // ICU4X has no names for the parts of a day; `a` is what a 12-hour clock needs.
                    let letter = if letter == 'B' || letter == 'b' { 'a' } else { letter };
                    let kind = kind_of(letter);
                    let requested = options.text(kind);
                    if requested == "numeric" && count <= 2 {
                        count = numeric_count(kind, count, options, numeric_widths(locale));
                    }
                    // A month that the pattern has as a number stays one: its name is not in this place.
                    let is_number =
                        kind == "month" && count <= 2 && matches!(requested, "long" | "short" | "narrow");
                    let count = if is_number { count } else { width(kind, count, requested) };
                    let letters: String = std::iter::repeat_n(letter, count).collect();
                    match letter {
                        'h' => hour_cycle = Some("h12"),
                        'H' => hour_cycle = Some("h23"),
                        'K' => hour_cycle = Some("h11"),
                        'k' => hour_cycle = Some("h24"),
                        _ => {}
                    }
                    adjusted.push_str(&letters);
                    adjusted.push(' ');
                    let pattern = DateTimePattern::try_from_pattern_str(&letters);
                    items.push(Item::Field(kind, pattern.map_err(IntlError::data)?));
                }
            }
        }
        let all = DateTimePattern::try_from_pattern_str(&adjusted).map_err(IntlError::data)?;
        names.load_for_pattern(&FormatData, &all).map_err(IntlError::data)?;
        let zone_text = match zone_style {
            Some(style) => {
                let mut builder = FieldSetBuilder::new();
                builder.zone_style = Some(style);
                let fields = builder.build_zone().map_err(IntlError::data)?;
                let formatter = NoCalendarFormatter::try_new_unstable(&FormatData, preferences, fields);
                let known = IanaParser::try_new_unstable(&FormatData).map_err(IntlError::data)?;
                let name = if zone.name() == "UTC" { "Etc/UTC" } else { zone.name() };
                Some((formatter.map_err(IntlError::data)?, known.as_borrowed().parse(name)))
            }
            None => None,
        };
        Ok(Self { items, names, zone, zone_text, hour_cycle, pattern: adjusted })
    }

    /// The time zone's name.
    pub fn zone(&self) -> &str {
        self.zone.name()
    }

    /// `h11`, `h12`, `h23` or `h24` if the pattern has an hour.
    pub fn hour_cycle(&self) -> Option<&'static str> {
        self.hour_cycle
    }

    /// The fields of the pattern, as letters of CLDR with a space after each field.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The parts of a time in milliseconds since 1970, of which ECMA-262 has ±8.64e15.
    pub fn format(&self, time_ms: f64) -> Result<Vec<TextPart>, IntlError> {
        let time_ms = time_ms.clamp(-8.64e15, 8.64e15) as i64;
        let offset = self.zone.offset_at(time_ms);
        let time = date_time(time_ms + i64::from(offset) * 1_000)?;
        let mut parts: Vec<TextPart> = Vec::new();
        for item in &self.items {
            match item {
                Item::Literal(text) => parts.push(("literal", text.clone())),
                Item::Field(kind, pattern) => {
                    let formatted = self.names.with_pattern_unchecked(pattern).format(&time);
                    // A field without a name is shown as its number.
                    let text = formatted.try_write_to_string().unwrap_or_else(|(_, text)| text);
                    parts.push((kind, text.into_owned()));
                }
                Item::Seconds(pattern) => {
                    let formatted = self.names.with_pattern_unchecked(pattern).format(&time);
                    let text = formatted.try_write_to_string().unwrap_or_else(|(_, text)| text);
                    let at = text.find(|digit: char| !digit.is_numeric()).unwrap_or(text.len());
                    let (seconds, rest) = text.split_at(at);
                    let end = rest.chars().next().map_or(0, char::len_utf8);
                    parts.push(("second", seconds.to_owned()));
                    parts.push(("literal", rest[..end].to_owned()));
                    parts.push(("fractionalSecond", rest[end..].to_owned()));
                }
                Item::Zone => parts.push(("timeZoneName", self.zone_name(offset, &time))),
            }
        }
        Ok(parts)
    }

    fn zone_name(&self, offset: i32, time: &DateTime<Gregorian>) -> String {
        let Some((formatter, id)) = &self.zone_text else { return self.zone.name().to_owned() };
        let info = id.with_offset(UtcOffset::try_from_seconds(offset).ok()).at_date_time(*time);
        formatter.format(&info).write_to_string().into_owned()
    }
}

/// The locale's pattern, with `z` for the zone's name, and the zone's style.
fn pattern(
    preferences: DateTimeFormatterPreferences,
    options: &FormatOptions,
) -> Result<(String, Option<ZoneStyle>), IntlError> {
    let (date_style, time_style) = (options.text("dateStyle"), options.text("timeStyle"));
    let of = |builder: &FieldSetBuilder| -> Result<String, IntlError> {
        let fields = composite(builder.clone())?;
        let formatter = FixedCalendarDateTimeFormatter::<Gregorian, _>::try_new_unstable(
            &FormatData,
            preferences,
            fields,
        )
        .map_err(IntlError::data)?;
        // A date of this century: its year has a form of two digits.
        let sample = date_time(1_767_225_600_000)?;
        // As V8 does: programs that parse such texts expect a plain space.
        Ok(formatter.format(&sample).pattern().to_string().replace('\u{202f}', " "))
    };
    let mut builder = FieldSetBuilder::new();
    if !date_style.is_empty() || !time_style.is_empty() {
        builder.date_fields = match date_style {
            "" => None,
            "full" => Some(DateFields::YMDE),
            _ => Some(DateFields::YMD),
        };
        builder.length = Some(match date_style {
            "full" | "long" => Length::Long,
            "medium" => Length::Medium,
            _ => Length::Short,
        });
        builder.time_precision = match time_style {
            "" => None,
            "short" => Some(TimePrecision::Minute),
            _ => Some(TimePrecision::Second),
        };
        let zone = match time_style {
            "full" => Some(ZoneStyle::SpecificLong),
            "long" => Some(ZoneStyle::SpecificShort),
            _ => None,
        };
        let pattern = of(&builder)?;
        return Ok((if zone.is_some() { format!("{pattern} z") } else { pattern }, zone));
    }
    let has = |name: &str| options.has(name);
    let (year, month, day, weekday) = (has("year"), has("month"), has("day"), has("weekday"));
    let era = has("era");
    let has_date = year || month || day || weekday;
    if has_date {
        let fields = date_fields([year, month, day, weekday]);
        builder.date_fields = Some(fields.ok_or(IntlError::DateFields)?);
    }
    if year {
        builder.year_style = Some(if era { YearStyle::WithEra } else { YearStyle::Full });
    }
    let (month, weekday) = (options.text("month"), options.text("weekday"));
    builder.length = Some(match (month, weekday) {
        ("long", _) | ("", "long") => Length::Long,
        ("short" | "narrow", _) | ("", "short" | "narrow") => Length::Medium,
        _ => Length::Short,
    });
    let (hour, minute, second) = (has("hour"), has("minute"), has("second"));
    let fraction = options.digits("fractionalSecondDigits");
    let subsecond = fraction.map(|digits| match digits {
        1 => SubsecondDigits::S1,
        2 => SubsecondDigits::S2,
        _ => SubsecondDigits::S3,
    });
    builder.time_precision = match (hour, minute, second) {
        (true, _, true) => Some(subsecond.map_or(TimePrecision::Second, TimePrecision::Subsecond)),
        (true, true, false) => Some(TimePrecision::Minute),
        (true, false, false) => Some(TimePrecision::Hour),
        _ => None,
    };
    // Times without an hour are the same everywhere.
    let rest = match (hour, minute, second) {
        (false, true, true) => "mm:ss",
        (false, true, false) => "m",
        (false, false, true) => "s",
        _ => "",
    };
    let rest = match (subsecond, hour, second) {
        (Some(digits), false, true) => format!("{rest}.{}", "S".repeat(digits as usize)),
        _ => rest.to_owned(),
    };
    let mut pattern = if has_date && hour && !minute && !second {
        // ICU4X's joint patterns with an hour alone do not know the clock of the locale.
        let (mut date, mut time) = (builder.clone(), FieldSetBuilder::new());
        date.time_precision = None;
        (time.length, time.time_precision) = (Some(Length::Short), builder.time_precision);
        let glue = if matches!(builder.date_fields, Some(DateFields::E)) { " " } else { ", " };
        format!("{}{glue}{}", of(&date)?, of(&time)?)
    } else if has_date || hour {
        of(&builder)?
    } else {
        String::new()
    };
    let has_names = |pattern: &str| pattern.contains("MMM") || pattern.contains("LLL");
    if matches!(month, "short" | "narrow") && !has_names(&pattern) {
        // Where the medium style is numeric, the long one has the place of the name.
        let mut date = builder.clone();
        date.time_precision = None;
        let medium = of(&date)?;
        date.length = Some(Length::Long);
        let long = of(&date)?;
        if has_names(&long) {
            pattern = pattern.replacen(&medium, &long, 1);
        }
    }
    if !rest.is_empty() {
        pattern = if pattern.is_empty() { rest.clone() } else { format!("{pattern}, {rest}") };
    }
    let zone = match options.text("timeZoneName") {
        "" => None,
        "long" => Some(ZoneStyle::SpecificLong),
        "shortOffset" => Some(ZoneStyle::LocalizedOffsetShort),
        "longOffset" => Some(ZoneStyle::LocalizedOffsetLong),
        "shortGeneric" => Some(ZoneStyle::GenericShort),
        "longGeneric" => Some(ZoneStyle::GenericLong),
        _ => Some(ZoneStyle::SpecificShort),
    };
    if zone.is_some() {
        pattern = match (pattern.as_str(), hour || !rest.is_empty()) {
            ("", _) => "z".to_owned(),
            (pattern, true) => format!("{pattern} z"),
            (pattern, false) => format!("{pattern}, z"),
        };
    }
    Ok((pattern, zone))
}

/// The tag without the keywords whose place the options have taken.
fn without_keywords(tag: &str) -> String {
    let (name, keywords) = split_tag(tag);
    let kept = keywords.iter().filter(|(key, _)| key != "ca" && key != "hc");
    let kept: String = kept
        .map(|(key, value)| if value.is_empty() { format!("-{key}") } else { format!("-{key}-{value}") })
        .collect();
    if kept.is_empty() { name } else { format!("{name}-u{kept}") }
}
