//! Owns the native functions of `crypto`: random bytes of the kernel, digests, HMAC, AES-GCM, and signatures that are verified.
//! Keys are bytes that the caller keeps; nothing is stored here.

use super::super::memory;
use super::super::state::SharedState;
use super::super::sys;
use super::text::LossyText;
use aes_gcm::AesGcm;
use aes_gcm::aead::consts::{U12, U16};
use aes_gcm::aead::{Aead, KeyInit, Nonce, Payload};
use aes_gcm::aes::{Aes128, Aes192, Aes256};
use hmac::{Hmac, Mac};
use p256::ecdsa::signature::Verifier;
use p256::ecdsa::signature::hazmat::PrehashVerifier;
use p256::elliptic_curve::sec1::ToSec1Point;
use p256::pkcs8::{DecodePublicKey, EncodePublicKey};
use rquickjs::{Ctx, Exception, Function, Object, Result, Value};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};

/// DER before the 32 bytes of an Ed25519 public key (RFC 8410).
const ED25519_SPKI: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

fn bytes_of<'js>(ctx: &Ctx<'js>, view: &Object<'js>) -> Result<Vec<u8>> {
    memory::reserve_for(ctx, view, 2)?;
    let bytes = sys::view_bytes(view, usize::MAX).map(|(bytes, _)| bytes);
    bytes.ok_or_else(|| Exception::throw_type(ctx, "The bytes of a detached buffer cannot be read."))
}

pub(super) fn optional_array<'js>(ctx: &Ctx<'js>, bytes: Option<Vec<u8>>) -> Result<Option<Value<'js>>> {
    bytes.map(|bytes| sys::new_uint8_array(ctx, &bytes)).transpose()
}

fn digest(name: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    Some(match name {
        "SHA-1" => Sha1::digest(bytes).to_vec(),
        "SHA-256" => Sha256::digest(bytes).to_vec(),
        "SHA-384" => Sha384::digest(bytes).to_vec(),
        "SHA-512" => Sha512::digest(bytes).to_vec(),
        _ => return None,
    })
}

fn hmac(name: &str, key: &[u8], bytes: &[u8]) -> Option<Vec<u8>> {
    fn code<M: Mac + KeyInit>(key: &[u8], bytes: &[u8]) -> Option<Vec<u8>> {
        let mut mac = <M as KeyInit>::new_from_slice(key).ok()?;
        mac.update(bytes);
        Some(mac.finalize().into_bytes().to_vec())
    }
    match name {
        "SHA-1" => code::<Hmac<Sha1>>(key, bytes),
        "SHA-256" => code::<Hmac<Sha256>>(key, bytes),
        "SHA-384" => code::<Hmac<Sha384>>(key, bytes),
        "SHA-512" => code::<Hmac<Sha512>>(key, bytes),
        _ => None,
    }
}

/// AES-GCM with a tag of 16 bytes; `None` if the key or the nonce has another length than those supported, or the tag is wrong.
fn aes_gcm(encrypt: bool, key: &[u8], nonce: &[u8], extra: &[u8], data: &[u8]) -> Option<Vec<u8>> {
    fn run<C: Aead + KeyInit>(
        encrypt: bool,
        key: &[u8],
        nonce: &[u8],
        payload: Payload<'_, '_>,
    ) -> Option<Vec<u8>> {
        let cipher = C::new_from_slice(key).ok()?;
        let nonce = Nonce::<C>::try_from(nonce).ok()?;
        if encrypt { cipher.encrypt(&nonce, payload).ok() } else { cipher.decrypt(&nonce, payload).ok() }
    }
    let payload = Payload { msg: data, aad: extra };
    match (key.len(), nonce.len()) {
        (16, 12) => run::<AesGcm<Aes128, U12>>(encrypt, key, nonce, payload),
        (24, 12) => run::<AesGcm<Aes192, U12>>(encrypt, key, nonce, payload),
        (32, 12) => run::<AesGcm<Aes256, U12>>(encrypt, key, nonce, payload),
        (16, 16) => run::<AesGcm<Aes128, U16>>(encrypt, key, nonce, payload),
        (24, 16) => run::<AesGcm<Aes192, U16>>(encrypt, key, nonce, payload),
        (32, 16) => run::<AesGcm<Aes256, U16>>(encrypt, key, nonce, payload),
        _ => None,
    }
}

/// `aesGcm(encrypt, key, nonce, extra, data)`: `undefined` if a length or the tag is wrong.
pub(super) fn aes_gcm_function<'js>(ctx: &Ctx<'js>) -> Result<Function<'js>> {
    let run = |ctx: Ctx<'js>,
               encrypt: bool,
               key: Object<'js>,
               nonce: Object<'js>,
               extra: Object<'js>,
               data: Object<'js>| {
        let (key, nonce) = (bytes_of(&ctx, &key)?, bytes_of(&ctx, &nonce)?);
        let (extra, data) = (bytes_of(&ctx, &extra)?, bytes_of(&ctx, &data)?);
        optional_array(&ctx, aes_gcm(encrypt, &key, &nonce, &extra, &data))
    };
    Function::new(ctx.clone(), run)
}

/// A public key as uncompressed point, or the 32 bytes of Ed25519; `None` if it is not one. `spki`: it is DER.
fn import_public(curve: &str, spki: bool, bytes: &[u8]) -> Option<Vec<u8>> {
    match curve {
        "P-256" => {
            let key = if spki {
                p256::PublicKey::from_public_key_der(bytes).ok()?
            } else {
                p256::PublicKey::from_sec1_bytes(bytes).ok()?
            };
            Some(key.to_sec1_point(false).as_bytes().to_vec())
        }
        "P-384" => {
            let key = if spki {
                p384::PublicKey::from_public_key_der(bytes).ok()?
            } else {
                p384::PublicKey::from_sec1_bytes(bytes).ok()?
            };
            Some(key.to_sec1_point(false).as_bytes().to_vec())
        }
        "Ed25519" => {
            let bytes = if spki { bytes.strip_prefix(&ED25519_SPKI)? } else { bytes };
            let key = ed25519_dalek::VerifyingKey::from_bytes(bytes.try_into().ok()?).ok()?;
            Some(key.to_bytes().to_vec())
        }
        _ => None,
    }
}

fn export_spki(curve: &str, key: &[u8]) -> Option<Vec<u8>> {
    let der = match curve {
        "P-256" => p256::PublicKey::from_sec1_bytes(key).ok()?.to_public_key_der().ok()?,
        "P-384" => p384::PublicKey::from_sec1_bytes(key).ok()?.to_public_key_der().ok()?,
        _ => return Some([&ED25519_SPKI[..], key].concat()),
    };
    Some(der.into_vec())
}

/// Whether the signature (`r` and `s`, or that of Ed25519) is the key's.
fn verify(curve: &str, hash: &str, key: &[u8], signature: &[u8], data: &[u8]) -> Option<bool> {
    Some(match curve {
        "P-256" => {
            let key = p256::ecdsa::VerifyingKey::from_sec1_bytes(key).ok()?;
            let Ok(signature) = p256::ecdsa::Signature::from_slice(signature) else { return Some(false) };
            key.verify_prehash(&digest(hash, data)?, &signature).is_ok()
        }
        "P-384" => {
            let key = p384::ecdsa::VerifyingKey::from_sec1_bytes(key).ok()?;
            let Ok(signature) = p384::ecdsa::Signature::from_slice(signature) else { return Some(false) };
            key.verify_prehash(&digest(hash, data)?, &signature).is_ok()
        }
        _ => {
            let key = ed25519_dalek::VerifyingKey::from_bytes(key.try_into().ok()?).ok()?;
            let Ok(signature) = ed25519_dalek::Signature::from_slice(signature) else { return Some(false) };
            key.verify(data, &signature).is_ok()
        }
    })
}

/// The functions of `prelude/crypto.js`. What is not supported or not valid is `undefined`.
pub(super) fn install<'js>(ctx: &Ctx<'js>, _: &SharedState, natives: &Object<'js>) -> Result<()> {
    natives.set(
        "random",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, count: usize| {
            let mut bytes = vec![0; count.min(65_536)];
            getrandom::fill(&mut bytes)
                .map_err(|error| Exception::throw_internal(&ctx, &format!("getrandom: {error}")))?;
            sys::new_uint8_array(&ctx, &bytes)
        })?,
    )?;
    natives.set(
        "digest",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, name: LossyText, data: Object<'js>| {
            optional_array(&ctx, digest(&name, &bytes_of(&ctx, &data)?))
        })?,
    )?;
    natives.set(
        "hmac",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, name: LossyText, key: Object<'js>, data: Object<'js>| {
            optional_array(&ctx, hmac(&name, &bytes_of(&ctx, &key)?, &bytes_of(&ctx, &data)?))
        })?,
    )?;
    natives.set("aesGcm", aes_gcm_function(ctx)?)?;
    natives.set(
        "importPublic",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, curve: LossyText, spki: bool, key: Object<'js>| {
            optional_array(&ctx, import_public(&curve, spki, &bytes_of(&ctx, &key)?))
        })?,
    )?;
    natives.set(
        "exportSpki",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, curve: LossyText, key: Object<'js>| {
            optional_array(&ctx, export_spki(&curve, &bytes_of(&ctx, &key)?))
        })?,
    )?;
    natives.set(
        "verify",
        Function::new(
            ctx.clone(),
            |ctx: Ctx<'js>,
             curve: LossyText,
             hash: LossyText,
             key: Object<'js>,
             signature: Object<'js>,
             data: Object<'js>| {
                let (key, signature) = (bytes_of(&ctx, &key)?, bytes_of(&ctx, &signature)?);
                Ok::<_, rquickjs::Error>(verify(&curve, &hash, &key, &signature, &bytes_of(&ctx, &data)?))
            },
        )?,
    )
}
