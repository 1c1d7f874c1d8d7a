const C = require('crypto-js');
console.log(C.MD5('a').toString(), `${C.SHA256('abc')}`, C.SHA3('x').toString(), C.HmacSHA512('m', 'k').toString(C.enc.Base64), C.PBKDF2('pw', 'salt', { keySize: 4, iterations: 10 }).toString(), C.RIPEMD160('z').toString());
const key = C.enc.Hex.parse('000102030405060708090a0b0c0d0e0f'); const iv = C.enc.Hex.parse('101112131415161718191a1b1c1d1e1f');
const e = C.AES.encrypt('secret message', key, { iv }); console.log(e.toString(), C.AES.decrypt(e.toString(), key, { iv }).toString(C.enc.Utf8), C.AES.decrypt(C.AES.encrypt('x', 'pass').toString(), 'pass').toString(C.enc.Utf8), C.TripleDES.encrypt('q', key, { iv, mode: C.mode.CTR, padding: C.pad.NoPadding }).ciphertext.toString(), C.lib.WordArray.random(8).sigBytes, C.RC4.encrypt('a', key).toString());
