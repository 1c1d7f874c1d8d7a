//! Owns the native functions of `node:zlib`: whole texts that are compressed or expanded, with a bound on what comes out.

use super::super::memory;
use super::super::state::SharedState;
use super::super::sys;
use super::brotli::Brotli;
use super::compression;
use super::text::LossyText;
use flate2::{Compression, Decompress, FlushDecompress, GzHeader, Status, bufread, write};
use rquickjs::{Array, Ctx, Exception, Function, Object, Result, Value};
use std::io::{Read, Write};

/// The formats of compressed data.
#[derive(Clone, Copy)]
enum Format {
    Gzip,
    Zlib,
    Raw,
}

fn compress(format: Format, level: u32, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let (level, out) = (Compression::new(level), Vec::new());
    match format {
        Format::Gzip => {
            let mut coder = write::GzEncoder::new(out, level);
            coder.write_all(bytes)?;
            // The operating system that Node writes, where the coder writes "unknown".
            coder.finish().map(|mut bytes| {
                if let Some(system) = bytes.get_mut(9) {
                    *system = 3;
                }
                bytes
            })
        }
        Format::Zlib => {
            let mut coder = write::ZlibEncoder::new(out, level);
            coder.write_all(bytes)?;
            coder.finish()
        }
        Format::Raw => {
            let mut coder = write::DeflateEncoder::new(out, level);
            coder.write_all(bytes)?;
            coder.finish()
        }
    }
}

const TOO_LARGE: &str = "too large";
const CUT_SHORT: &str = "unexpected end of file";
const WRONG_HEADER: &str = "incorrect header check";

/// The content; the error has zlib's words. `partial`: data that are cut short are no error.
fn expand(format: Format, bytes: &[u8], most: usize, partial: bool) -> std::result::Result<Vec<u8>, String> {
    match format {
        Format::Gzip => {
            if bytes.iter().zip([0x1f_u8, 0x8b]).any(|(byte, magic)| *byte != magic) {
                return Err(WRONG_HEADER.to_owned());
            }
            let mut out = Vec::new();
            let mut left = bytes;
            // Several members are one content; other bytes after the last one are ignored.
            while left.starts_with(&[0x1f, 0x8b]) || (out.is_empty() && left.len() == bytes.len()) {
                let mut coder = bufread::GzDecoder::new(left);
                let limit = (most - out.len()) as u64;
                match coder.by_ref().take(limit + 1).read_to_end(&mut out) {
                    Ok(_) if out.len() > most => return Err(TOO_LARGE.to_owned()),
                    Ok(_) => {}
                    Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                        return if partial { Ok(out) } else { Err(CUT_SHORT.to_owned()) };
                    }
                    Err(_) => {
                        // The library has one error for both: where the data themselves are whole, the checksum behind them is wrong.
                        let data = coder.header().and_then(|header| left.get(header_bytes(left, header)..));
                        let is_whole = data
                            .is_some_and(|data| inflate(Decompress::new(false), data, most, true).is_ok());
                        let what = if is_whole { "incorrect data check" } else { "invalid block type" };
                        return Err(what.to_owned());
                    }
                }
                let rest = coder.into_inner();
                if rest.len() == left.len() {
                    break;
                }
                left = rest;
            }
            Ok(out)
        }
        Format::Zlib | Format::Raw => {
            let zlib = matches!(format, Format::Zlib);
            if zlib
                && bytes.len() >= 2
                && (bytes[0] & 15 != 8 || !u16::from_be_bytes([bytes[0], bytes[1]]).is_multiple_of(31))
            {
                return Err(WRONG_HEADER.to_owned());
            }
            inflate(Decompress::new(zlib), bytes, most, partial)
        }
    }
}

/// Length of the header of a gzip member (RFC 1952, 2.3).
fn header_bytes(member: &[u8], header: &GzHeader) -> usize {
    const FIXED: usize = 10;
    const CHECKSUM_FLAG: u8 = 2;
    let extra = header.extra().map_or(0, |extra| 2 + extra.len());
    let texts = [header.filename(), header.comment()].into_iter().flatten().map(|text| text.len() + 1);
    let has_checksum = member.get(3).is_some_and(|flags| flags & CHECKSUM_FLAG != 0);
    FIXED + extra + texts.sum::<usize>() + 2 * usize::from(has_checksum)
}

fn inflate(
    mut coder: Decompress,
    bytes: &[u8],
    most: usize,
    partial: bool,
) -> std::result::Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(bytes.len().saturating_mul(2).clamp(256, 65_536));
    loop {
        if out.len() > most {
            return Err(TOO_LARGE.to_owned());
        }
        if out.len() == out.capacity() {
            out.reserve(out.len().max(256));
        }
        let (taken, before) = (coder.total_in() as usize, out.len());
        let status = coder.decompress_vec(&bytes[taken..], &mut out, FlushDecompress::None);
        match status {
            Ok(Status::StreamEnd) if out.len() > most => return Err(TOO_LARGE.to_owned()),
            Ok(Status::StreamEnd) => return Ok(out),
            Ok(_)
                if coder.total_in() as usize == taken
                    && out.len() == before
                    && out.len() < out.capacity() =>
            {
                return if partial { Ok(out) } else { Err(CUT_SHORT.to_owned()) };
            }
            Ok(_) => {}
            Err(_) => return Err("invalid stored block lengths".to_owned()),
        }
    }
}

fn expand_brotli(bytes: &[u8], most: usize, partial: bool) -> std::result::Result<Vec<u8>, String> {
    let mut coder = Brotli::new();
    let out = coder.run(bytes, most).map_err(|error| error.to_string())?;
    if coder.ended || partial { Ok(out) } else { Err(CUT_SHORT.to_owned()) }
}

fn format_of(name: &str, bytes: &[u8]) -> Format {
    match name {
        "gzip" => Format::Gzip,
        "raw" => Format::Raw,
        "unzip" if bytes.first() == Some(&0x1f) => Format::Gzip,
        _ => Format::Zlib,
    }
}

fn bytes_of<'js>(ctx: &Ctx<'js>, view: &Object<'js>) -> Result<Vec<u8>> {
    memory::reserve(ctx, compression::CODER_BYTES)?;
    memory::reserve_for(ctx, view, 2)?;
    let bytes = sys::view_bytes(view, usize::MAX).map(|(bytes, _)| bytes);
    bytes.ok_or_else(|| Exception::throw_type(ctx, "The bytes of a detached buffer cannot be read."))
}

/// `compress(format, level, bytes)`; `expand(format, bytes, most, partial)` gives the content, or `undefined` and the error; `coder`.
pub(super) fn install<'js>(ctx: &Ctx<'js>, state: &SharedState, natives: &Object<'js>) -> Result<()> {
    compression::install(ctx, state, natives)?;
    natives.set(
        "compress",
        Function::new(
            ctx.clone(),
            |ctx: Ctx<'js>, name: LossyText, level: u32, bytes: Object<'js>| -> Result<Value<'js>> {
                let bytes = bytes_of(&ctx, &bytes)?;
                let output = compress(format_of(&name, &[]), level.min(9), &bytes)
                    .map_err(|error| Exception::throw_message(&ctx, &error.to_string()))?;
                sys::new_uint8_array(&ctx, &output)
            },
        )?,
    )?;
    let run = |ctx: Ctx<'js>,
               name: LossyText,
               bytes: Object<'js>,
               most: f64,
               partial: bool|
     -> Result<Array<'js>> {
        let bytes = bytes_of(&ctx, &bytes)?;
        let result = Array::new(ctx.clone())?;
        // A vector that grows has its old and its new block at once; and then there is the script's array.
        let fits = memory::left_bytes() / 4;
        let bound = (most as usize).min(fits);
        let expanded = if &*name == "brotli" {
            expand_brotli(&bytes, bound, partial)
        } else {
            expand(format_of(&name, &bytes), &bytes, bound, partial)
        };
        if bound == fits && expanded.as_ref().is_err_and(|error| error == TOO_LARGE) {
            return Err(Exception::throw_internal(&ctx, "out of memory"));
        }
        match expanded {
            Ok(output) => result.set(0, sys::new_uint8_array(&ctx, &output)?)?,
            Err(error) => result.set(1, error)?,
        }
        Ok(result)
    };
    natives.set("expand", Function::new(ctx.clone(), run)?)
}

#[cfg(test)]
mod tests {
    use super::{CUT_SHORT, Format, TOO_LARGE, compress, expand};
    use flate2::{Compression, GzBuilder, write};
    use std::io::Write as _;

    #[test]
    fn what_is_compressed_expands_within_its_bound() {
        let text = b"abc ".repeat(10_000);
        for format in [Format::Gzip, Format::Zlib, Format::Raw] {
            let packed = compress(format, 6, &text).expect("compressed");
            assert_eq!(expand(format, &packed, text.len(), false).expect("expanded"), text);
            assert_eq!(expand(format, &packed, text.len() - 1, false), Err(TOO_LARGE.to_owned()));
            assert_eq!(
                expand(format, &packed[..packed.len() / 2], 1 << 20, false),
                Err(CUT_SHORT.to_owned())
            );
            assert!(expand(format, &packed[..packed.len() / 2], 1 << 20, true).is_ok());
            assert!(expand(format, &[0x78, 0x9c, 0xff, 0xff, 0xff], 1 << 20, false).is_err());
        }
        let twice =
            [compress(Format::Gzip, 1, b"a").expect("one"), compress(Format::Gzip, 9, b"b").expect("two")]
                .concat();
        assert_eq!(expand(Format::Gzip, &twice, 10, false).expect("both"), b"ab");
    }

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut coder: write::GzEncoder<Vec<u8>> =
            GzBuilder::new().filename("a").comment("b").write(Vec::new(), Compression::default());
        coder.write_all(text).expect("into memory");
        coder.finish().expect("into memory")
    }

    #[test]
    fn a_wrong_checksum_and_broken_data_have_the_messages_of_zlib() {
        let whole = packed(b"some text");
        let expanded = |bytes: &[u8]| expand(Format::Gzip, bytes, 1_000, false);
        assert_eq!(expanded(&whole).as_deref(), Ok(b"some text".as_slice()));
        let mut checksum = whole.clone();
        let at = checksum.len() - 8;
        checksum[at] ^= 1;
        assert_eq!(expanded(&checksum), Err("incorrect data check".to_owned()));
        let mut data = whole;
        // Behind ten bytes, `a` and `b`, each with its end: a block of the type that does not exist.
        data[14] = 0xff;
        assert_eq!(expanded(&data), Err("invalid block type".to_owned()));
    }
}
