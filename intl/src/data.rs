//! Owns the data of the formatters: one blob without pointers, of which a process reads the pages that it needs from the binary's
//! file. `intl/datagen` writes it. Texts that are compared, cut or converted (collation, segmentation, case) have data in
//! their crates.

use super::markers::with_markers;
use icu_locale::LocaleFallbacker;
use icu_provider::prelude::*;
use icu_provider_adapters::fallback::LocaleFallbackProvider;
use icu_provider_blob::BlobDataProvider;
use std::sync::OnceLock;

static BLOB: &[u8] = include_bytes!("../data/formats.postcard");

/// The blob, where a locale without data has those of its parent.
type Formats = LocaleFallbackProvider<BlobDataProvider>;

/// Loads the types of `markers.rs` alone: a formatter that reads another one is not compiled.
pub(crate) struct FormatData;

fn formats() -> Result<&'static Formats, DataError> {
    static FORMATS: OnceLock<Result<Formats, DataError>> = OnceLock::new();
    let opened = FORMATS.get_or_init(|| {
        let blob = BlobDataProvider::try_new_from_static_blob(BLOB)?;
        Ok(LocaleFallbackProvider::new(blob, LocaleFallbacker::new().static_to_owned()))
    });
    opened.as_ref().map_err(|error| *error)
}

macro_rules! load_from_the_blob {
    (
        by_locale { $($marker:path = $_table:path;)+ }
        once { $($single:path = $_single_table:path;)+ }
    ) => {
        load_from_the_blob!($($marker)+ $($single)+);
    };
    ($($marker:path)+) => {
        $(
            impl DataProvider<$marker> for FormatData {
                fn load(&self, request: DataRequest) -> Result<DataResponse<$marker>, DataError> {
                    formats()?.as_deserializing().load(request)
                }
            }
        )+
    };
}
// A set of fields without a zone has no names of zones.
icu_provider::marker::impl_data_provider_never_marker!(FormatData);
with_markers!(load_from_the_blob);
