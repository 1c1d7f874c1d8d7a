//! Writes the data of the formatters, as far as they read them, to one file: `cargo run --manifest-path intl/datagen/Cargo.toml`.
//! With `--check` it compares the file instead. The source is the data that ICU4X's crates have as Rust tables.
//!
//! Owns: which locales have data. Must not: change a value.

extern crate alloc;

use icu_experimental::dimension::provider::units::display_names::UnitsDisplayNamesV1;
use icu_provider::dynutil::UpcastDataPayload;
use icu_provider::export::{DataExporter, ExportMarker, FlushMetadata};
use icu_provider::prelude::*;
use icu_provider_blob::export::BlobExporter;
use std::path::Path;
use std::process::ExitCode;

#[path = "../../src/languages.rs"]
mod languages;
#[allow(dead_code)]
#[path = "../../src/lists.rs"]
mod lists;
#[path = "../../src/markers.rs"]
mod markers;

use markers::with_markers;

/// The crates by the names that the tables use.
mod icu {
    pub use icu_datetime as datetime;
    pub use icu_decimal as decimal;
    pub use icu_experimental as experimental;
    pub use icu_list as list;
    pub use icu_locale as locale;
    pub use icu_plurals as plurals;
    pub use icu_time as time;
}

/// The tables.
struct Tables;

macro_rules! read_tables {
    (
        by_locale { $($_marker:path = $table:path;)+ }
        once { $($_single:path = $single_table:path;)+ }
    ) => {
        $($table!(Tables, ITER);)+
        $($single_table!(Tables);)+
    };
}
const _: () = {
    // The macros call each other by their bare names.
    #[allow(unused_imports)]
    use {
        icu_datetime_data::*, icu_decimal_data::*, icu_experimental_data::*, icu_list_data::*,
        icu_plurals_data::*, icu_time_data::*,
    };
    icu_decimal_data::make_provider!(Tables);
    with_markers!(read_tables);
};

/// Locales of languages that scripts may name, and the root, which every locale falls back to.
fn is_kept(locale: &DataLocale) -> bool {
    locale.language.is_unknown() || languages::LANGUAGES.contains(&locale.language.as_str())
}

/// Units that scripts may name; the attribute has the width before it, as in `long-kilometer-per-hour`.
fn is_kept_unit(attribute: &str) -> bool {
    attribute.split_once('-').is_some_and(|(_, unit)| lists::is_unit(unit))
}

fn export<M>(exporter: &BlobExporter<'_>) -> Result<(), DataError>
where
    M: DataMarker,
    Tables: IterableDataProvider<M>,
    ExportMarker: UpcastDataPayload<M>,
{
    let mut count = 0;
    // The same for all locales: types that belong together are loaded from tables of one release.
    let mut metadata = FlushMetadata::default();
    let is_of_units = M::INFO == UnitsDisplayNamesV1::INFO;
    for id in Tables.iter_ids()? {
        if !is_kept(&id.locale) || is_of_units && !is_kept_unit(&id.marker_attributes) {
            continue;
        }
        let request = DataRequest { id: id.as_borrowed(), ..DataRequest::default() };
        let response = DataProvider::<M>::load(&Tables, request)?;
        metadata.checksum = response.metadata.checksum;
        let payload = ExportMarker::upcast(response.payload);
        exporter.put_payload(M::INFO, id.as_borrowed(), &payload)?;
        count += 1;
    }
    eprintln!("{count:6} {:?}", M::INFO.id.name());
    exporter.flush(M::INFO, metadata)
}

fn export_single<M>(exporter: &BlobExporter<'_>) -> Result<(), DataError>
where
    M: DataMarker,
    Tables: DataProvider<M>,
    ExportMarker: UpcastDataPayload<M>,
{
    let response = DataProvider::<M>::load(&Tables, DataRequest::default())?;
    let mut metadata = FlushMetadata::default();
    metadata.checksum = response.metadata.checksum;
    exporter.flush_singleton(M::INFO, &ExportMarker::upcast(response.payload), metadata)
}

fn blob() -> Result<Vec<u8>, DataError> {
    let mut bytes = Vec::new();
    let mut exporter = BlobExporter::new_with_sink(Box::new(&mut bytes));
    macro_rules! export_all {
        (
            by_locale { $($marker:path = $_table:path;)+ }
            once { $($single:path = $_single_table:path;)+ }
        ) => {
            $(export::<$marker>(&exporter)?;)+
            $(export_single::<$single>(&exporter)?;)+
        };
    }
    with_markers!(export_all);
    exporter.close()?;
    drop(exporter);
    Ok(bytes)
}

fn main() -> ExitCode {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/formats.postcard");
    let bytes = match blob() {
        Ok(bytes) => bytes,
        Err(error) => {
            eprintln!("vm-system-intl-datagen: {error}");
            return ExitCode::FAILURE;
        }
    };
    if std::env::args().any(|argument| argument == "--check") {
        let is_equal = std::fs::read(&file).is_ok_and(|written| written == bytes);
        println!(
            "intl/data/formats.postcard {}",
            if is_equal { "is as generated" } else { "differs: run the generator" }
        );
        return if is_equal { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    match std::fs::write(&file, &bytes) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("vm-system-intl-datagen: {}: {error}", file.display());
            ExitCode::FAILURE
        }
    }
}
