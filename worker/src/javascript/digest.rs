//! Hash functions for `crypto.subtle.digest` and `node:crypto`.

use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use rquickjs::{Ctx, Exception, Function, Object, Result, TypedArray};
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::latin1::latin1_to_bytes;

/// Adds the native functions `digest` and `hmac`. They take bytes as strings of the characters U+0000 to U+00FF. The algorithm is
/// written in small letters and without a hyphen.
pub(super) fn add<'js>(ctx: &Ctx<'js>, natives: &Object<'js>) -> Result<()> {
    let digest = |ctx: Ctx<'js>, algorithm: String, data: String| -> Result<TypedArray<'js, u8>> {
        let data = latin1_to_bytes(&ctx, &data)?;
        let hash = digest(&algorithm, &data).ok_or_else(|| unknown(&ctx, &algorithm))?;
        TypedArray::new(ctx, hash)
    };
    natives.set("digest", Function::new(ctx.clone(), digest)?)?;
    let hmac = |ctx: Ctx<'js>, algorithm: String, key: String, data: String| -> Result<TypedArray<'js, u8>> {
        let (key, data) = (latin1_to_bytes(&ctx, &key)?, latin1_to_bytes(&ctx, &data)?);
        let hash = authenticate(&algorithm, &key, &data).ok_or_else(|| unknown(&ctx, &algorithm))?;
        TypedArray::new(ctx, hash)
    };
    natives.set("hmac", Function::new(ctx.clone(), hmac)?)
}

fn unknown(ctx: &Ctx<'_>, algorithm: &str) -> rquickjs::Error {
    let words = format!(
        "Digest method not supported: {algorithm:.40}: the Lockhouse sandbox has sha1, sha224, sha256, sha384, sha512 and md5"
    );
    Exception::throw_message(ctx, &words)
}

fn digest(algorithm: &str, data: &[u8]) -> Option<Vec<u8>> {
    Some(match algorithm {
        "md5" => Md5::digest(data).to_vec(),
        "sha1" => Sha1::digest(data).to_vec(),
        "sha224" => Sha224::digest(data).to_vec(),
        "sha256" => Sha256::digest(data).to_vec(),
        "sha384" => Sha384::digest(data).to_vec(),
        "sha512" => Sha512::digest(data).to_vec(),
        _ => return None,
    })
}

fn authenticate(algorithm: &str, key: &[u8], data: &[u8]) -> Option<Vec<u8>> {
    fn code<M: Mac + KeyInit>(key: &[u8], data: &[u8]) -> Option<Vec<u8>> {
        let mut code = <M as KeyInit>::new_from_slice(key).ok()?;
        code.update(data);
        Some(code.finalize().into_bytes().to_vec())
    }
    match algorithm {
        "md5" => code::<Hmac<Md5>>(key, data),
        "sha1" => code::<Hmac<Sha1>>(key, data),
        "sha224" => code::<Hmac<Sha224>>(key, data),
        "sha256" => code::<Hmac<Sha256>>(key, data),
        "sha384" => code::<Hmac<Sha384>>(key, data),
        "sha512" => code::<Hmac<Sha512>>(key, data),
        _ => None,
    }
}
