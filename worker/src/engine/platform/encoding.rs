//! Owns the native functions of `TextDecoder`: the encodings of the Encoding Standard, in pieces.

use super::super::memory;
use super::super::sys;
use super::text::LossyText;
use encoding_rs::{CoderResult, Decoder, DecoderResult, Encoding};
use rquickjs::function::MutFn;
use rquickjs::{Ctx, Exception, Function, Object, Result};

/// The next piece as text; `None` for bytes that are not valid, if that is an error.
fn decode(decoder: &mut Decoder, fatal: bool, bytes: &[u8], last: bool) -> Option<String> {
    let most = if fatal {
        decoder.max_utf8_buffer_length_without_replacement(bytes.len())
    } else {
        decoder.max_utf8_buffer_length(bytes.len())
    };
    let mut text = String::with_capacity(most?);
    if fatal {
        let (result, _) = decoder.decode_to_string_without_replacement(bytes, &mut text, last);
        return (result == DecoderResult::InputEmpty).then_some(text);
    }
    let (result, _, _) = decoder.decode_to_string(bytes, &mut text, last);
    (result == CoderResult::InputEmpty).then_some(text)
}

/// `encodingOf(label)` gives the encoding's name or `undefined`; `decoder(name, fatal, ignoreBOM)` a function of the next bytes and
/// whether they are the last.
pub(super) fn install<'js>(ctx: &Ctx<'js>, natives: &Object<'js>) -> Result<()> {
    natives.set(
        "encodingOf",
        Function::new(ctx.clone(), |label: LossyText| {
            Encoding::for_label_no_replacement(label.as_bytes())
                .map(|encoding| encoding.name().to_ascii_lowercase())
        })?,
    )?;
    natives.set(
        "decoder",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, name: LossyText, fatal: bool, keep_mark: bool| {
            let encoding = Encoding::for_label(name.as_bytes()).unwrap_or(encoding_rs::UTF_8);
            let mut decoder = if keep_mark {
                encoding.new_decoder_without_bom_handling()
            } else {
                encoding.new_decoder_with_bom_removal()
            };
            let run = move |ctx: Ctx<'js>, bytes: Object<'js>, last: bool| {
                memory::reserve_for(&ctx, &bytes, 4)?;
                let (bytes, _) = sys::view_bytes(&bytes, usize::MAX).ok_or_else(|| {
                    Exception::throw_type(&ctx, "The bytes of a detached buffer cannot be read.")
                })?;
                Ok::<_, rquickjs::Error>(decode(&mut decoder, fatal, &bytes, last))
            };
            Function::new(ctx, MutFn::new(run))
        })?,
    )
}
