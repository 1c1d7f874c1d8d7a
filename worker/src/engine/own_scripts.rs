//! Owns the scripts of ours: the prelude and the parts of the platform. Each is compiled when the program is tested, because reading
//! its code takes a tenth of the time: 4 ms at the start of a zygote, and 2 ms in a session that uses `fetch`. Knows nothing of what
//! they do.
//!
//! `prelude/scripts.bin` has for each script: the length of its name (`u8`), the name, the SHA-256 of its text, the length of its code
//! (`u32`, little endian), the code. After a change of a text: `VM_SYSTEM_BLESS=1 cargo test -p vm-system-worker own_scripts`.

use super::compiled::sys::{compiled, read_code};
use rquickjs::{Ctx, Value, qjs};

/// A script that evaluates to a function.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnScript {
    /// The name in stacks.
    pub(super) name: &'static str,
    /// Empty in an optimised program, which has the code alone.
    pub(super) text: &'static str,
}

/// The text of a file beneath `prelude`.
macro_rules! own_text {
    ($path:literal) => {
        if cfg!(debug_assertions) {
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/engine/prelude/", $path))
        } else {
            ""
        }
    };
}
pub(super) use own_text;

const SCRIPTS: &[u8] = include_bytes!("prelude/scripts.bin");
const HASH_BYTES: usize = 32;

impl OwnScript {
    /// The script before it is evaluated.
    pub(super) fn load<'js>(&self, ctx: &Ctx<'js>) -> Option<Value<'js>> {
        match self.code() {
            Some(code) => read_code(ctx, code),
            None => self.compile(ctx),
        }
    }

    fn compile<'js>(&self, ctx: &Ctx<'js>) -> Option<Value<'js>> {
        compiled(ctx, self.text, self.name, qjs::JS_EVAL_FLAG_STRICT)
    }

    /// The code; `None` if the text has changed since it was made, as while it is being worked on.
    fn code(&self) -> Option<&'static [u8]> {
        let (hash, code) =
            entries().find_map(|(name, entry)| (name == self.name.as_bytes()).then_some(entry))?;
        let is_current = !cfg!(debug_assertions) || hash == hash_of(self.text);
        is_current.then_some(code)
    }
}

fn hash_of(text: &str) -> [u8; HASH_BYTES] {
    use sha2::Digest as _;
    sha2::Sha256::digest(text).into()
}

/// Names, and for each the hash of its text and its code.
fn entries() -> impl Iterator<Item = (&'static [u8], ([u8; HASH_BYTES], &'static [u8]))> {
    let mut rest = SCRIPTS;
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first()?;
        let (name, after) = after.split_at_checked(usize::from(*length))?;
        let (hash, after) = after.split_first_chunk()?;
        let (length, after) = after.split_first_chunk()?;
        let (code, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        rest = after;
        Some((name, (*hash, code)))
    })
}

#[cfg(test)]
mod tests {
    use super::super::compiled::sys::write_code;
    use super::super::{platform, preload};
    use super::{OwnScript, SCRIPTS, hash_of};
    use rquickjs::{Context, Runtime};
    use std::path::Path;

    /// The content of `scripts.bin`.
    fn made_of_texts(scripts: &[OwnScript]) -> Vec<u8> {
        let mut made = Vec::new();
        for script in scripts {
            // A context of its own for each, so that the code does not depend on what was compiled before.
            let runtime = Runtime::new().expect("a runtime");
            // Unoptimised code needs more stack.
            runtime.set_max_stack_size(0);
            let context = Context::full(&runtime).expect("a context");
            let code = context.with(|ctx| {
                let compiled = script.compile(&ctx).unwrap_or_else(|| panic!("{} is no script", script.name));
                write_code(&ctx, &compiled)
            });
            made.push(u8::try_from(script.name.len()).expect("a short name"));
            made.extend(script.name.as_bytes());
            made.extend(hash_of(script.text));
            made.extend(u32::try_from(code.len()).expect("a short script").to_le_bytes());
            made.extend(code);
        }
        made
    }

    #[test]
    fn code_of_own_scripts_is_made_of_their_texts() {
        let scripts: Vec<_> = preload::PRELUDE.iter().copied().chain(platform::scripts()).collect();
        let made = made_of_texts(&scripts);
        if std::env::var_os("VM_SYSTEM_BLESS").is_some() {
            let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/engine/prelude/scripts.bin");
            std::fs::write(place, made).expect("the source is writable");
            return;
        }
        assert!(made == SCRIPTS, "VM_SYSTEM_BLESS=1 writes scripts.bin");
    }
}
