//! Owns the native functions of `CompressionStream` and `DecompressionStream`: the formats gzip, deflate and deflate-raw in pieces, and
//! Brotli, which is only expanded.

use super::super::memory;
use super::super::state::SharedState;
use super::super::sys;
use super::brotli::{Brotli, BrotliError};
use super::text::LossyText;
use flate2::write::{DeflateDecoder, DeflateEncoder, GzDecoder, GzEncoder, ZlibDecoder, ZlibEncoder};
use flate2::{Compression, write};
use rquickjs::function::{MutFn, Opt};
use rquickjs::{Ctx, Exception, Function, Object, Result, Value};
use std::io::{self, Write};

/// Most bytes that one piece may grow to: whatever the session's limit.
const MOST_OUTPUT: usize = 64 * 1024 * 1024;

/// The bytes that a coder takes at most before it has any data: window, tables, buffers.
pub(super) const CODER_BYTES: u64 = 512 * 1024;

fn too_large() -> io::Error {
    io::Error::other("one chunk expands to more than 64 MiB: write it in smaller chunks")
}

/// Output that is bounded.
#[derive(Default)]
struct Output(Vec<u8>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MOST_OUTPUT {
            return Err(too_large());
        }
        if self.0.len() + bytes.len() > self.0.capacity()
            && 2 * (self.0.len() + bytes.len()) > memory::left_bytes()
        {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Coder {
    Gzip(GzEncoder<Output>),
    Zlib(ZlibEncoder<Output>),
    Deflate(DeflateEncoder<Output>),
    Gunzip(GzDecoder<Output>),
    Unzlib(ZlibDecoder<Output>),
    Inflate(DeflateDecoder<Output>),
    Brotli(Brotli),
    Ended,
}

impl Coder {
    fn new(format: &str, decompress: bool, level: Option<u32>) -> Self {
        let (out, level) = (Output::default(), level.map_or_else(Compression::default, Compression::new));
        match (format, decompress) {
            ("gzip", false) => Self::Gzip(GzEncoder::new(out, level)),
            ("deflate", false) => Self::Zlib(ZlibEncoder::new(out, level)),
            (_, false) => Self::Deflate(DeflateEncoder::new(out, level)),
            ("gzip", true) => Self::Gunzip(GzDecoder::new(out)),
            ("brotli", true) => Self::Brotli(Brotli::new()),
            ("deflate", true) => Self::Unzlib(ZlibDecoder::new(out)),
            (_, true) => Self::Inflate(DeflateDecoder::new(out)),
        }
    }

    /// The output of one piece; the end of the input is an error where the format says that more follows.
    fn run(&mut self, bytes: &[u8], end: bool) -> io::Result<Vec<u8>> {
        if end {
            return match std::mem::replace(self, Self::Ended) {
                Self::Gzip(coder) => coder.finish(),
                Self::Zlib(coder) => coder.finish(),
                Self::Deflate(coder) => coder.finish(),
                Self::Gunzip(coder) => coder.finish(),
                Self::Unzlib(coder) => coder.finish(),
                Self::Inflate(coder) => coder.finish(),
                Self::Brotli(coder) if !coder.ended => {
                    Err(io::Error::new(io::ErrorKind::UnexpectedEof, "unexpected end of file"))
                }
                Self::Brotli(_) | Self::Ended => Ok(Output::default()),
            }
            .map(|output| output.0);
        }
        let output = match self {
            Self::Gzip(coder) => piece(coder, bytes, false, write::GzEncoder::get_mut),
            Self::Zlib(coder) => piece(coder, bytes, false, write::ZlibEncoder::get_mut),
            Self::Deflate(coder) => piece(coder, bytes, false, write::DeflateEncoder::get_mut),
            Self::Gunzip(coder) => piece(coder, bytes, true, write::GzDecoder::get_mut),
            Self::Unzlib(coder) => piece(coder, bytes, true, write::ZlibDecoder::get_mut),
            Self::Inflate(coder) => piece(coder, bytes, true, write::DeflateDecoder::get_mut),
            Self::Brotli(coder) => coder.run(bytes, MOST_OUTPUT).map_err(|error| match error {
                BrotliError::TooLarge => too_large(),
                BrotliError::Invalid(..) => io::Error::new(io::ErrorKind::InvalidData, error.to_string()),
            }),
            Self::Ended => Ok(Vec::new()),
        };
        if output.is_err() {
            *self = Self::Ended;
        }
        output
    }
}

fn piece<C: Write>(
    coder: &mut C,
    mut bytes: &[u8],
    decodes: bool,
    output: fn(&mut C) -> &mut Output,
) -> io::Result<Vec<u8>> {
    while !bytes.is_empty() {
        match coder.write(bytes)? {
            // Bytes after the end of the compressed data.
            0 => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "Trailing junk found after the end of the compressed stream",
                ));
            }
            taken => bytes = &bytes[taken..],
        }
    }
    // An encoder keeps what compresses better together with what follows.
    if decodes {
        coder.flush()?;
    }
    Ok(std::mem::take(&mut output(coder).0))
}

/// Bytes that [`expand`] expands at once: what comes out of them is at most about a thousand times as much.
const EXPAND_STEP: usize = 16 * 1024;

/// Expands these bytes, if the result is not more than `most` bytes; `format` is `gzip`, `deflate` or `brotli`.
pub(crate) fn expand(format: &str, bytes: &[u8], most: usize) -> io::Result<Vec<u8>> {
    let mut coder = Coder::new(format, true, None);
    let mut out = Vec::new();
    for piece in bytes.chunks(EXPAND_STEP).chain([&[][..]]) {
        out.extend(coder.run(piece, piece.is_empty())?);
        if out.len() > most {
            return Err(io::Error::other(format!("it expands to more than {} KiB", most / 1024)));
        }
    }
    Ok(out)
}

/// `coder(format, decompress, level?)` gives a function of the next bytes and whether they are the last.
pub(super) fn install<'js>(ctx: &Ctx<'js>, _: &SharedState, natives: &Object<'js>) -> Result<()> {
    natives.set(
        "coder",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, format: LossyText, decompress: bool, level: Opt<u32>| {
            memory::reserve(&ctx, CODER_BYTES)?;
            let mut coder = Coder::new(&format, decompress, level.0.map(|level| level.min(9)));
            let run = move |ctx: Ctx<'js>, bytes: Object<'js>, end: bool| -> Result<Value<'js>> {
                memory::reserve_for(&ctx, &bytes, 2)?;
                let (bytes, _) = sys::view_bytes(&bytes, usize::MAX).ok_or_else(|| {
                    Exception::throw_type(&ctx, "The bytes of a detached buffer cannot be read.")
                })?;
                let output = coder.run(&bytes, end).map_err(|error| match error.kind() {
                    io::ErrorKind::OutOfMemory => Exception::throw_internal(&ctx, "out of memory"),
                    _ => Exception::throw_type(&ctx, &error.to_string()),
                })?;
                sys::new_uint8_array(&ctx, &output)
            };
            Function::new(ctx, MutFn::new(run))
        })?,
    )
}
