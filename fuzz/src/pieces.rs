//! An input as a list of steps: each is a byte for its kind, two bytes for the length of its content (little endian), and the content.
//! The last content may be shorter than its length.

/// The steps of an input.
#[derive(Debug, Clone)]
pub struct Pieces<'a> {
    rest: &'a [u8],
}

impl<'a> Pieces<'a> {
    /// At the beginning of an input.
    pub fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (&kind, rest) = self.rest.split_first()?;
        let (len, rest) = rest.split_first_chunk::<2>().unwrap_or((&[0, 0], rest));
        let (content, rest) = rest.split_at(rest.len().min(usize::from(u16::from_le_bytes(*len))));
        self.rest = rest;
        Some((kind, content))
    }
}

/// A number from the first bytes.
pub fn number(content: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let len = content.len().min(8);
    bytes[..len].copy_from_slice(&content[..len]);
    u64::from_le_bytes(bytes)
}

/// A text; invalid bytes are replaced.
pub fn text(content: &[u8]) -> String {
    String::from_utf8_lossy(content).into_owned()
}
