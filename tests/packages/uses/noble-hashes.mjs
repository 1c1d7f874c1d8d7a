import { sha256, sha512 } from '@noble/hashes/sha2.js';
import { sha3_256, keccak_256 } from '@noble/hashes/sha3.js';
import { blake2b } from '@noble/hashes/blake2.js';
import { blake3 } from '@noble/hashes/blake3.js';
import { hmac } from '@noble/hashes/hmac.js';
import { hkdf } from '@noble/hashes/hkdf.js';
import { pbkdf2, pbkdf2Async } from '@noble/hashes/pbkdf2.js';
import { scrypt } from '@noble/hashes/scrypt.js';
import { bytesToHex as hex, utf8ToBytes, randomBytes } from '@noble/hashes/utils.js';
const m = utf8ToBytes('abc ü');
for (const h of [sha256, sha512, sha3_256, keccak_256, blake2b, blake3]) console.log(hex(h(m)), hex(h.create().update(m.subarray(0, 2)).update(m.subarray(2)).digest()));
console.log(hex(hmac(sha256, utf8ToBytes('k'), m)), hex(hkdf(sha256, m, undefined, undefined, 20)), hex(pbkdf2(sha256, m, utf8ToBytes('s'), { c: 20, dkLen: 16 })), hex(scrypt(m, utf8ToBytes('s'), { N: 64, r: 2, p: 1, dkLen: 8 })), randomBytes(5).length, hex(await pbkdf2Async(sha512, m, m, { c: 50, dkLen: 8 })));
try { sha256('text'); } catch (e) { console.log(e.name, e.message); }
