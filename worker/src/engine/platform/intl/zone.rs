//! Owns the machine's time zone, which is the local one of sessions. The rules of zones are `vm-system-intl`'s.

use std::sync::OnceLock;
use vm_system_intl::TimeZoneRules;

/// The machine's time zone, found by the zygote: sessions cannot open files.
static LOCAL: OnceLock<Local> = OnceLock::new();

enum Local {
    Named(String),
    /// The rules of a file whose name is not known.
    Rules(Vec<u8>),
}

/// Reads the local time zone as the C library does, whose zone `Date` has: `TZ`, then `/etc/localtime`.
pub(in crate::engine) fn learn_local() {
    LOCAL.get_or_init(|| {
        let known =
            |name: &str| TimeZoneRules::named(name.trim()).map(|zone| Local::Named(zone.name().to_owned()));
        let variable = std::env::var("TZ").ok().and_then(|name| known(name.trim_start_matches(':')));
        let link = || {
            let path = std::fs::canonicalize("/etc/localtime").ok()?;
            known(path.to_str()?.split_once("zoneinfo/")?.1)
        };
        let rules = || std::fs::read("/etc/localtime").ok().map(Local::Rules);
        variable.or_else(link).or_else(rules).unwrap_or_else(|| Local::Named("UTC".to_owned()))
    });
}

/// The zone of this name, or the machine's; one whose name is not known has CLDR's name for that.
pub(super) fn time_zone(name: Option<&str>) -> Option<TimeZoneRules> {
    match (name, LOCAL.get()) {
        (Some(name), _) => TimeZoneRules::named(name),
        (None, Some(Local::Named(name))) => TimeZoneRules::named(name),
        (None, Some(Local::Rules(rules))) => TimeZoneRules::of_file("Etc/Unknown", rules),
        (None, None) => TimeZoneRules::named("UTC"),
    }
}
