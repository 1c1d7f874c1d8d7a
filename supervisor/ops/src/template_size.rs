//! The size of a template with all its parts, and its bound: each session and each copy in a cache has all of it.

use super::errors::invalid;
use vm_system_protocol::control::OpError;
use vm_system_protocol::model::TemplateDetail;

/// Largest template (bytes of names, configs, paths and lists, and [`ROW_BYTES`] for each row).
pub(super) const TEMPLATE_BYTES: usize = 256 * 1024;
/// The bytes that a row takes beside its texts.
pub(super) const ROW_BYTES: usize = 64;

/// The size of a template (bytes).
pub(super) fn bytes(detail: &TemplateDetail) -> usize {
    let texts = |list: &[String]| list.iter().map(|text| text.len() + ROW_BYTES).sum::<usize>();
    let rows = detail.capabilities.iter().map(|row| row.name.len() + row.config.as_str().len() + ROW_BYTES);
    let files = detail.startup_files.iter().map(|file| file.path.len() + ROW_BYTES);
    // The lists of the settings are bounded by themselves, and a part of the sum.
    let resolver = &detail.settings.resolver;
    rows.sum::<usize>()
        + files.sum::<usize>()
        + texts(&detail.template.exposed_modules)
        + texts(&detail.template.libraries)
        + texts(&resolver.roots)
        + texts(&resolver.extensions)
}

/// Refuses a part of so many bytes, if the template would be too large with it.
pub(super) fn check_added(detail: &TemplateDetail, added: usize) -> Result<(), OpError> {
    let now = bytes(detail);
    if now + added <= TEMPLATE_BYTES {
        return Ok(());
    }
    let message = format!(
        "the template would have {} bytes with it; a template with all its parts has at most {TEMPLATE_BYTES} bytes",
        now + added
    );
    Err(invalid(message)
        .with_hint("remove capabilities or startup files, shorten configs, or use a second template"))
}
