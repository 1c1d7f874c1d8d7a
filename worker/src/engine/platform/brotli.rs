//! Owns the expansion of Brotli, whole and in pieces, with a bound on what comes out. Must not choose the bound.

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};

/// Bytes that are expanded at once.
const STEP: usize = 16 * 1024;

/// Why data could not be expanded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum BrotliError {
    #[error("too large")]
    TooLarge,
    /// The number of the error, and its name without the prefix of the library, as `node:zlib` needs them.
    #[error("brotli {0} {1}")]
    Invalid(i32, String),
}

/// Data that are being expanded.
pub(super) struct Brotli {
    state: Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>,
    total: usize,
    /// All of it was read; what follows is ignored, as in Node.
    pub(super) ended: bool,
}

impl Brotli {
    pub(super) fn new() -> Self {
        let state = BrotliState::new_strict(
            StandardAlloc::default(),
            StandardAlloc::default(),
            StandardAlloc::default(),
        );
        Self { state: Box::new(state), total: 0, ended: false }
    }

    /// Expands the next bytes, if the result is not more than `most` bytes.
    pub(super) fn run(&mut self, bytes: &[u8], most: usize) -> Result<Vec<u8>, BrotliError> {
        let mut out = Vec::new();
        let (mut left, mut at) = (bytes.len(), 0);
        while !self.ended {
            let mut step = [0; STEP];
            let (mut free, mut written) = (STEP, 0);
            let result = BrotliDecompressStream(
                &mut left,
                &mut at,
                bytes,
                &mut free,
                &mut written,
                &mut step,
                &mut self.total,
                &mut self.state,
            );
            if out.len() + written > most {
                return Err(BrotliError::TooLarge);
            }
            out.extend_from_slice(&step[..written]);
            match result {
                BrotliResult::ResultSuccess => self.ended = true,
                BrotliResult::NeedsMoreOutput => {}
                BrotliResult::NeedsMoreInput => break,
                BrotliResult::ResultFailure => {
                    let name = format!("{:?}", self.state.error_code);
                    let name = name.strip_prefix("BROTLI_DECODER").unwrap_or(&name).to_owned();
                    return Err(BrotliError::Invalid(self.state.error_code as i32, name));
                }
            }
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::{Brotli, BrotliError};

    /// `the same words again and again. ` 300 times, as Node compresses it.
    const WORDS: &[u8] = &[
        0x1b, 0x7f, 0x25, 0x60, 0xa4, 0x40, 0x5c, 0x7a, 0x90, 0x43, 0x16, 0xb9, 0x0c, 0x6c, 0xc0, 0x79, 0x60,
        0x65, 0xe3, 0x2e, 0x91, 0x2a, 0x3f, 0x42, 0x58, 0xa3, 0x03, 0x20, 0x01,
    ];

    #[test]
    fn pieces_expand_to_the_whole_within_the_bound() {
        let words = b"the same words again and again. ".repeat(300);
        assert_eq!(Brotli::new().run(WORDS, words.len()).as_ref(), Ok(&words));
        assert_eq!(Brotli::new().run(WORDS, words.len() - 1), Err(BrotliError::TooLarge));
        let mut coder = Brotli::new();
        let mut pieces = Vec::new();
        for byte in WORDS {
            assert!(!coder.ended);
            pieces.extend(coder.run(&[*byte], words.len()).expect("a piece"));
        }
        assert!(coder.ended);
        assert_eq!(pieces, words);
        assert_eq!(coder.run(b"what follows", 0).as_deref(), Ok(&[][..]));
        let broken = Brotli::new().run(b"nothing that is packed", 100);
        assert_eq!(broken, Err(BrotliError::Invalid(-15, "_ERROR_FORMAT_PADDING_2".to_owned())));
    }
}
