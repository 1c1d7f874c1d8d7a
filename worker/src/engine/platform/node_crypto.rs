//! Owns the native functions of `node:crypto`: digests and codes in pieces, keys from passwords, random bytes of the kernel.

use super::super::memory;
use super::super::state::SharedState;
use super::super::sys;
use super::crypto::{aes_gcm_function, optional_array};
use super::text::LossyText;
use aes_gcm::aes::cipher::{Block, BlockCipherDecrypt, BlockCipherEncrypt};
use aes_gcm::aes::{Aes128, Aes192, Aes256};
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use rquickjs::function::{MutFn, Opt};
use rquickjs::{Ctx, Exception, Function, Object, Result, Value};
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512, Sha512_224, Sha512_256};

/// Most bytes of random data, or of a derived key.
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// Most rounds of PBKDF2, over all blocks of a key: a native is not interrupted.
const MOST_ROUNDS: u64 = 20_000_000;
/// Most memory of scrypt (bytes), whatever the script permits.
const SCRYPT_BYTES: u64 = 256 * 1024 * 1024;

/// A digest or code of which more may follow.
trait Running {
    fn update(&mut self, bytes: &[u8]);
    fn value(&self) -> Vec<u8>;
    fn copy(&self) -> Box<dyn Running>;
}

#[derive(Clone)]
struct Hashing<D>(D);

impl<D: Digest + Clone + 'static> Running for Hashing<D> {
    fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn value(&self) -> Vec<u8> {
        self.0.clone().finalize().to_vec()
    }

    fn copy(&self) -> Box<dyn Running> {
        Box::new(Self(self.0.clone()))
    }
}

#[derive(Clone)]
struct Coding<M>(M);

impl<M: Mac + Clone + 'static> Running for Coding<M> {
    fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn value(&self) -> Vec<u8> {
        self.0.clone().finalize().into_bytes().to_vec()
    }

    fn copy(&self) -> Box<dyn Running> {
        Box::new(Self(self.0.clone()))
    }
}

/// Calls a function with the AES of a key; `None` if the key has another length.
macro_rules! with_aes {
    ($key:expr, $run:ident ( $($argument:expr),* )) => {
        match $key.len() {
            16 => Some($run(&Aes128::new_from_slice($key).ok()?, $($argument),*)),
            24 => Some($run(&Aes192::new_from_slice($key).ok()?, $($argument),*)),
            32 => Some($run(&Aes256::new_from_slice($key).ok()?, $($argument),*)),
            _ => None,
        }
    };
}

/// Whole blocks in CBC (SP 800-38A).
fn cbc(encrypt: bool, key: &[u8], iv: &[u8], data: &[u8]) -> Option<Vec<u8>> {
    fn run<C: BlockCipherEncrypt + BlockCipherDecrypt>(
        cipher: &C,
        encrypt: bool,
        iv: &[u8],
        data: &[u8],
    ) -> Vec<u8> {
        let mut result = Vec::with_capacity(data.len());
        let mut chain = iv.to_vec();
        for piece in data.chunks_exact(16) {
            let mut block = Block::<C>::default();
            block.copy_from_slice(piece);
            if encrypt {
                block.iter_mut().zip(&chain).for_each(|(byte, with)| *byte ^= with);
                cipher.encrypt_block(&mut block);
                chain.copy_from_slice(&block);
            } else {
                cipher.decrypt_block(&mut block);
                block.iter_mut().zip(&chain).for_each(|(byte, with)| *byte ^= with);
                chain.copy_from_slice(piece);
            }
            result.extend_from_slice(&block);
        }
        result
    }
    if iv.len() != 16 || !data.len().is_multiple_of(16) {
        return None;
    }
    with_aes!(key, run(encrypt, iv, data))
}

/// Data in CTR from byte `at` of the key stream that begins with this counter block (SP 800-38A).
fn ctr(key: &[u8], counter: &[u8], at: u64, data: &[u8]) -> Option<Vec<u8>> {
    fn run<C: BlockCipherEncrypt>(cipher: &C, counter: u128, at: u64, data: &[u8]) -> Vec<u8> {
        let mut result = Vec::with_capacity(data.len());
        let mut counter = counter.wrapping_add(u128::from(at / 16));
        let mut skipped = (at % 16) as usize;
        while result.len() < data.len() {
            let mut block = Block::<C>::default();
            block.copy_from_slice(&counter.to_be_bytes());
            cipher.encrypt_block(&mut block);
            let piece = &data[result.len()..];
            result.extend(piece.iter().zip(&block[skipped..]).map(|(byte, with)| byte ^ with));
            counter = counter.wrapping_add(1);
            skipped = 0;
        }
        result
    }
    let counter = u128::from_be_bytes(counter.try_into().ok()?);
    with_aes!(key, run(counter, at, data))
}

/// Calls a macro with the type of a digest.
macro_rules! with_digest {
    ($name:expr, $use:ident) => {
        match $name {
            "md5" => $use!(Md5),
            "sha1" => $use!(Sha1),
            "sha224" => $use!(Sha224),
            "sha256" => $use!(Sha256),
            "sha384" => $use!(Sha384),
            "sha512" => $use!(Sha512),
            "sha512-224" => $use!(Sha512_224),
            "sha512-256" => $use!(Sha512_256),
            _ => None,
        }
    };
}

fn start(name: &str, key: Option<&[u8]>) -> Option<Box<dyn Running>> {
    macro_rules! begin {
        ($digest:ty) => {
            match key {
                None => Some(Box::new(Hashing(<$digest>::new())) as Box<dyn Running>),
                Some(key) => {
                    let code = <Hmac<$digest> as KeyInit>::new_from_slice(key).ok()?;
                    Some(Box::new(Coding(code)) as Box<dyn Running>)
                }
            }
        };
    }
    with_digest!(name, begin)
}

/// A key of `length` bytes.
fn pbkdf2(name: &str, password: &[u8], salt: &[u8], rounds: u32, length: usize) -> Option<Vec<u8>> {
    let mut key = vec![0; length];
    macro_rules! derive {
        ($digest:ty) => {{
            pbkdf2::pbkdf2_hmac::<$digest>(password, salt, rounds, &mut key);
            Some(())
        }};
    }
    let derived: Option<()> = with_digest!(name, derive);
    derived.map(|()| key)
}

fn bytes_of<'js>(ctx: &Ctx<'js>, view: &Object<'js>) -> Result<Vec<u8>> {
    memory::reserve_for(ctx, view, 2)?;
    let bytes = sys::view_bytes(view, usize::MAX).map(|(bytes, _)| bytes);
    bytes.ok_or_else(|| Exception::throw_type(ctx, "The bytes of a detached buffer cannot be read."))
}

/// The function of a running digest: with bytes it adds them; without, it returns the value; `copy` returns another such function.
fn running<'js>(ctx: &Ctx<'js>, mut state: Box<dyn Running>) -> Result<Value<'js>> {
    let run = move |ctx: Ctx<'js>, bytes: Opt<Value<'js>>, copy: Opt<bool>| -> Result<Value<'js>> {
        if copy.0 == Some(true) {
            return running(&ctx, state.copy());
        }
        match bytes.0.and_then(Value::into_object) {
            Some(bytes) => {
                state.update(&bytes_of(&ctx, &bytes)?);
                Ok(Value::new_undefined(ctx))
            }
            None => sys::new_uint8_array(&ctx, &state.value()),
        }
    };
    Ok(Function::new(ctx.clone(), MutFn::new(run))?.into_value())
}

fn check_length(ctx: &Ctx<'_>, length: f64) -> Result<usize> {
    if length >= 0.0 && length <= MOST_BYTES as f64 {
        return Ok(length as usize);
    }
    Err(Exception::throw_range(ctx, "a session gets at most 64 MiB at a time"))
}

/// `hasher(name, key?)`, `random(length)`, `pbkdf2(name, password, salt, rounds, length)`, `scrypt(password, salt, log2N, r, p, length)`,
/// `equal(a, b)`.
pub(super) fn install<'js>(ctx: &Ctx<'js>, _: &SharedState, natives: &Object<'js>) -> Result<()> {
    natives.set(
        "hasher",
        Function::new(
            ctx.clone(),
            |ctx: Ctx<'js>, name: LossyText, key: Opt<Object<'js>>| -> Result<Value<'js>> {
                let key = key.0.map(|key| bytes_of(&ctx, &key)).transpose()?;
                match start(&name, key.as_deref()) {
                    Some(state) => running(&ctx, state),
                    None => Ok(Value::new_undefined(ctx)),
                }
            },
        )?,
    )?;
    natives.set(
        "random",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, length: f64| -> Result<Value<'js>> {
            let length = check_length(&ctx, length)?;
            memory::reserve(&ctx, 2 * length as u64)?;
            let mut bytes = vec![0; length];
            getrandom::fill(&mut bytes)
                .map_err(|error| Exception::throw_message(&ctx, &error.to_string()))?;
            sys::new_uint8_array(&ctx, &bytes)
        })?,
    )?;
    let derive = |ctx: Ctx<'js>,
                  name: LossyText,
                  password: Object<'js>,
                  salt: Object<'js>,
                  rounds: f64,
                  length: f64|
     -> Result<Value<'js>> {
        let length = check_length(&ctx, length)?;
        memory::reserve(&ctx, 2 * length as u64)?;
        let rounds = rounds as u32;
        if u64::from(rounds) * (length as u64).div_ceil(16) > MOST_ROUNDS {
            let message =
                "a session derives keys with at most 20 000 000 rounds, counted for each 16 bytes of the key";
            return Err(Exception::throw_range(&ctx, message));
        }
        let (password, salt) = (bytes_of(&ctx, &password)?, bytes_of(&ctx, &salt)?);
        match pbkdf2(&name, &password, &salt, rounds, length) {
            Some(key) => sys::new_uint8_array(&ctx, &key),
            None => Ok(Value::new_undefined(ctx)),
        }
    };
    natives.set("pbkdf2", Function::new(ctx.clone(), derive)?)?;
    let derive = |ctx: Ctx<'js>,
                  password: Object<'js>,
                  salt: Object<'js>,
                  costs: Vec<f64>,
                  length: f64|
     -> Result<Value<'js>> {
        let length = check_length(&ctx, length)?;
        let [log_n, r, p] = costs[..] else {
            return Err(Exception::throw_range(&ctx, "Invalid scrypt params"));
        };
        let (log_n, r, p) = (log_n as u8, r as u32, p as u32);
        let bytes = 128_u64.saturating_mul(u64::from(r)).checked_shl(u32::from(log_n)).unwrap_or(u64::MAX);
        let work = bytes.saturating_mul(u64::from(p));
        if log_n > 40 || work > SCRYPT_BYTES {
            let message = "a session derives keys with scrypt with at most 256 MiB (128 * N * r * p)";
            return Err(Exception::throw_range(&ctx, message));
        }
        let params = scrypt::Params::new(log_n, r, p);
        let params = params.map_err(|_| Exception::throw_range(&ctx, "Invalid scrypt params"))?;
        let (password, salt) = (bytes_of(&ctx, &password)?, bytes_of(&ctx, &salt)?);
        memory::reserve(&ctx, work + 2 * length as u64)?;
        let mut key = vec![0; length];
        scrypt::scrypt(&password, &salt, &params, &mut key)
            .map_err(|_| Exception::throw_range(&ctx, "Invalid scrypt params"))?;
        sys::new_uint8_array(&ctx, &key)
    };
    natives.set("scrypt", Function::new(ctx.clone(), derive)?)?;
    ciphers(ctx, natives)?;
    let equal = |ctx: Ctx<'js>, left: Object<'js>, right: Object<'js>| -> Result<bool> {
        let (left, right) = (bytes_of(&ctx, &left)?, bytes_of(&ctx, &right)?);
        // In a time that does not depend on the content.
        let difference = left.iter().zip(&right).fold(0, |all, (left, right)| all | (left ^ right));
        Ok(left.len() == right.len() && std::hint::black_box(difference) == 0)
    };
    natives.set("equal", Function::new(ctx.clone(), equal)?)
}

/// Ciphers: `undefined` if a length or a tag is wrong.
fn ciphers<'js>(ctx: &Ctx<'js>, natives: &Object<'js>) -> Result<()> {
    let run = |ctx: Ctx<'js>, encrypt: bool, key: Object<'js>, iv: Object<'js>, data: Object<'js>| {
        let (key, iv, data) = (bytes_of(&ctx, &key)?, bytes_of(&ctx, &iv)?, bytes_of(&ctx, &data)?);
        optional_array(&ctx, cbc(encrypt, &key, &iv, &data))
    };
    natives.set("aesCbc", Function::new(ctx.clone(), run)?)?;
    let run = |ctx: Ctx<'js>, key: Object<'js>, counter: Object<'js>, at: f64, data: Object<'js>| {
        let (key, counter) = (bytes_of(&ctx, &key)?, bytes_of(&ctx, &counter)?);
        optional_array(&ctx, ctr(&key, &counter, at as u64, &bytes_of(&ctx, &data)?))
    };
    natives.set("aesCtr", Function::new(ctx.clone(), run)?)?;
    natives.set("aesGcm", aes_gcm_function(ctx)?)
}
