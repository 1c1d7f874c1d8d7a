// The global `crypto`: random values and the Web Cryptography API for digests, HMAC, AES-GCM, and signatures that are verified.
// The work is native; this checks arguments and keeps keys.
0,function (own, native, captured) {
  'use strict';
  const { Object, Symbol, Uint8Array, ArrayBuffer, DOMException } = captured.globals;
  const { invalidType } = captured;
  const { enumerable, illegal, invalidThis, tag } = captured.part('classes');
  const { getOwnPropertyDescriptor } = Object;
  const { isView } = ArrayBuffer;
  const secret = {};
  const notSupported = (what) => new DOMException(`${what} is not available in sessions`, 'NotSupportedError');
  const integerArrays = ['Int8Array', 'Uint8Array', 'Uint8ClampedArray', 'Int16Array', 'Uint16Array', 'Int32Array', 'Uint32Array',
    'BigInt64Array', 'BigUint64Array'];
  // A copy: the caller may change its buffer later.
  const bytesOf = (data, name = 'data') => {
    if (isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength).slice();
    if (data instanceof ArrayBuffer) return new Uint8Array(data.slice(0));
    throw invalidType(`The "${name}" argument must be an instance of ArrayBuffer, Buffer, TypedArray, or DataView.`);
  };

  let dataOf;
  class CryptoKey {
    #type; #extractable; #algorithm; #usages; #bytes;
    constructor(key = undefined, fields = undefined) {
      if (key !== secret) throw illegal();
      this.#type = fields.type;
      this.#extractable = fields.extractable;
      this.#algorithm = fields.algorithm;
      this.#usages = fields.usages;
      this.#bytes = fields.bytes;
    }
    static #of(value) {
      if (typeof value !== 'object' || value === null || !(#bytes in value)) throw invalidThis('CryptoKey');
      return value;
    }
    get type() { return CryptoKey.#of(this).#type; }
    get extractable() { return CryptoKey.#of(this).#extractable; }
    get algorithm() { return CryptoKey.#of(this).#algorithm; }
    get usages() { return CryptoKey.#of(this).#usages; }
    static {
      dataOf = (key) => {
        if (typeof key !== 'object' || key === null || !(#bytes in key)) {
          throw invalidType('The "key" argument must be an instance of CryptoKey.');
        }
        return { type: key.#type, extractable: key.#extractable, algorithm: key.#algorithm, usages: key.#usages, bytes: key.#bytes };
      };
      captured.showAs((object) => (#bytes in object ? {
        type: object.#type, extractable: object.#extractable, algorithm: object.#algorithm, usages: object.#usages } : undefined));
    }
  }
  enumerable(CryptoKey.prototype, ['type', 'extractable', 'algorithm', 'usages']);
  tag(CryptoKey.prototype, 'CryptoKey');

  const HASHES = { __proto__: null, 'SHA-1': 64, 'SHA-256': 64, 'SHA-384': 128, 'SHA-512': 128 };
  const NAMES = { __proto__: null };
  for (const name of ['HMAC', 'AES-GCM', 'ECDSA', 'Ed25519', ...Object.keys(HASHES)]) NAMES[name.toUpperCase()] = name;
  const algorithmOf = (algorithm) => {
    const given = typeof algorithm === 'string' ? { name: algorithm } : algorithm;
    if (typeof given !== 'object' || given === null || given.name === undefined) {
      throw invalidType('The "algorithm" argument must be a string or an object with a name.');
    }
    const name = NAMES[`${given.name}`.toUpperCase()];
    if (name === undefined) throw notSupported(`The algorithm ${given.name}`);
    return { ...given, name };
  };
  const hashOf = (hash) => {
    const { name } = algorithmOf(hash);
    if (HASHES[name] === undefined) throw notSupported(`${name} as a hash`);
    return name;
  };
  const needs = (key, name, usage) => {
    const data = dataOf(key);
    if (data.algorithm.name !== name) throw new DOMException('Key algorithm mismatch', 'InvalidAccessError');
    if (!data.usages.includes(usage)) throw new DOMException(`Unable to use this key to ${usage}`, 'InvalidAccessError');
    return data;
  };
  const usagesOf = (usages, allowed) => {
    const list = [...usages];
    for (const usage of list) {
      if (!allowed.includes(usage)) throw new DOMException(`Unsupported key usage: ${usage}`, 'SyntaxError');
    }
    return allowed.filter((usage) => list.includes(usage));
  };
  const USAGES = { __proto__: null, HMAC: ['sign', 'verify'],
    'AES-GCM': ['encrypt', 'decrypt', 'wrapKey', 'unwrapKey'], ECDSA: ['verify'], Ed25519: ['verify'] };
  const toText = (bytes) => native.decode(bytes, 'base64url', false);
  const fromText = (text) => native.encode(`${text}`, 'base64url');
  const dataError = (message) => new DOMException(message, 'DataError');
  const secretKey = (algorithm, bytes, extractable, usages) => {
    if (usages.length === 0) throw new DOMException('Usages cannot be empty when importing a secret key.', 'SyntaxError');
    return new CryptoKey(secret, { type: 'secret', extractable: !!extractable, algorithm, usages, bytes });
  };
  const secretAlgorithm = (algorithm, bytes) => {
    if (algorithm.name === 'HMAC') {
      if (bytes.length === 0) throw dataError('Zero-length key is not supported');
      return { name: 'HMAC', hash: { name: hashOf(algorithm.hash) }, length: bytes.length * 8 };
    }
    if (![16, 24, 32].includes(bytes.length)) throw dataError('Invalid key length');
    return { name: 'AES-GCM', length: bytes.length * 8 };
  };
  const jwkName = (algorithm) => (algorithm.name === 'HMAC'
    ? `HS${algorithm.hash.name.slice(4)}` : `A${algorithm.length}GCM`);
  const same = (a, b) => {
    let different = a.length ^ b.length;
    for (let i = 0; i < a.length; i++) different |= a[i] ^ b[i];
    return different === 0;
  };
  const aes = (encrypt, algorithm, key, data) => {
    const { bytes } = needs(key, 'AES-GCM', encrypt ? 'encrypt' : 'decrypt');
    const iv = bytesOf(algorithm.iv, 'algorithm.iv');
    const extra = algorithm.additionalData === undefined ? new Uint8Array(0) : bytesOf(algorithm.additionalData);
    if (algorithm.tagLength !== undefined && algorithm.tagLength !== 128) throw notSupported('An AES-GCM tag of other than 128 bits');
    if (iv.length !== 12 && iv.length !== 16) throw notSupported('An AES-GCM iv of other than 12 or 16 bytes');
    const output = own.aesGcm(encrypt, bytes, iv, extra, bytesOf(data));
    if (output === undefined) {
      throw new DOMException('The operation failed for an operation-specific reason', 'OperationError');
    }
    return output.buffer;
  };

  class SubtleCrypto {
    constructor(key = undefined) { if (key !== secret) throw illegal(); }
    async digest(algorithm, data) {
      const name = hashOf(algorithm);
      return own.digest(name, bytesOf(data)).buffer;
    }
    async generateKey(algorithm, extractable, keyUsages) {
      const given = algorithmOf(algorithm);
      if (given.name === 'HMAC') {
        const hash = hashOf(given.hash);
        const bits = given.length === undefined ? HASHES[hash] * 8 : +given.length;
        if (bits === 0 || bits % 8 !== 0) throw new DOMException('Unsupported key length', 'OperationError');
        const bytes = own.random(bits / 8);
        return secretKey(secretAlgorithm(given, bytes), bytes, extractable, usagesOf(keyUsages, USAGES.HMAC));
      }
      if (given.name === 'AES-GCM') {
        if (![128, 192, 256].includes(given.length)) throw new DOMException('Invalid key length', 'OperationError');
        const bytes = own.random(given.length / 8);
        return secretKey(secretAlgorithm(given, bytes), bytes, extractable, usagesOf(keyUsages, USAGES['AES-GCM']));
      }
      throw notSupported(`Generating keys of ${given.name}`);
    }
    async importKey(format, keyData, algorithm, extractable, keyUsages) {
      const given = algorithmOf(algorithm);
      const { name } = given;
      if (USAGES[name] === undefined) throw notSupported(`Importing keys of ${name}`);
      if (name === 'HMAC' || name === 'AES-GCM') {
        let bytes;
        if (format === 'raw') bytes = bytesOf(keyData, 'keyData');
        else if (format === 'jwk') {
          if (typeof keyData !== 'object' || keyData === null || keyData.kty !== 'oct') throw dataError('Invalid keyData');
          bytes = fromText(keyData.k);
        } else throw notSupported(`The format ${format} of ${name} keys`);
        const made = secretAlgorithm(given, bytes);
        if (format === 'jwk' && keyData.alg !== undefined && keyData.alg !== jwkName(made)) throw dataError('JWK "alg" does not match the requested algorithm');
        return secretKey(made, bytes, extractable, usagesOf(keyUsages, USAGES[name]));
      }
      const curve = name === 'ECDSA' ? `${given.namedCurve}` : 'Ed25519';
      if (name === 'ECDSA' && curve !== 'P-256' && curve !== 'P-384') throw notSupported(`The curve ${curve}`);
      let raw;
      if (format === 'raw' || format === 'spki') raw = own.importPublic(curve, format === 'spki', bytesOf(keyData, 'keyData'));
      else if (format === 'jwk') {
        if (typeof keyData !== 'object' || keyData === null || keyData.crv !== curve) throw dataError('Invalid keyData');
        if (keyData.d !== undefined) throw notSupported('A private key');
        const x = fromText(keyData.x);
        if (name === 'ECDSA') {
          const y = fromText(keyData.y);
          const point = new Uint8Array(1 + x.length + y.length);
          point[0] = 4;
          point.set(x, 1);
          point.set(y, 1 + x.length);
          raw = own.importPublic(curve, false, point);
        } else raw = own.importPublic(curve, false, x);
      } else throw notSupported(`The format ${format} of ${name} keys`);
      if (raw === undefined) throw dataError('Invalid keyData');
      return new CryptoKey(secret, { type: 'public', extractable: !!extractable, bytes: raw, usages: usagesOf(keyUsages, ['verify']),
        algorithm: name === 'ECDSA' ? { name, namedCurve: curve } : { name } });
    }
    async exportKey(format, key) {
      const { type, extractable, algorithm, usages, bytes } = dataOf(key);
      if (!extractable) throw new DOMException('key is not extractable', 'InvalidAccessException');
      if (format === 'raw') return bytes.slice().buffer;
      const shared = { key_ops: [...usages], ext: true };
      if (type === 'secret') {
        if (format === 'jwk') return { ...shared, kty: 'oct', k: toText(bytes), alg: jwkName(algorithm) };
      } else {
        const curve = algorithm.namedCurve ?? 'Ed25519';
        if (format === 'spki') return own.exportSpki(curve, bytes).buffer;
        if (format === 'jwk' && curve === 'Ed25519') return { ...shared, crv: curve, x: toText(bytes), kty: 'OKP' };
        if (format === 'jwk') {
          const half = (bytes.length - 1) / 2;
          return { ...shared, kty: 'EC', x: toText(bytes.slice(1, 1 + half)), y: toText(bytes.slice(1 + half)), crv: curve };
        }
      }
      throw notSupported(`The format ${format} of ${algorithm.name} keys`);
    }
    async sign(algorithm, key, data) {
      const { name } = algorithmOf(algorithm);
      if (name !== 'HMAC') throw notSupported(`Signing with ${name}`);
      const { algorithm: of, bytes } = needs(key, name, 'sign');
      return own.hmac(of.hash.name, bytes, bytesOf(data)).buffer;
    }
    async verify(algorithm, key, signature, data) {
      const given = algorithmOf(algorithm);
      if (given.name === 'HMAC') {
        const { algorithm: of, bytes } = needs(key, 'HMAC', 'verify');
        return same(own.hmac(of.hash.name, bytes, bytesOf(data)), bytesOf(signature, 'signature'));
      }
      if (given.name !== 'ECDSA' && given.name !== 'Ed25519') throw notSupported(`Verifying with ${given.name}`);
      const { algorithm: of, bytes } = needs(key, given.name, 'verify');
      const hash = given.name === 'ECDSA' ? hashOf(given.hash) : '';
      return own.verify(of.namedCurve ?? 'Ed25519', hash, bytes, bytesOf(signature, 'signature'), bytesOf(data));
    }
    async encrypt(algorithm, key, data) {
      const given = algorithmOf(algorithm);
      if (given.name !== 'AES-GCM') throw notSupported(`Encrypting with ${given.name}`);
      return aes(true, given, key, data);
    }
    async decrypt(algorithm, key, data) {
      const given = algorithmOf(algorithm);
      if (given.name !== 'AES-GCM') throw notSupported(`Decrypting with ${given.name}`);
      return aes(false, given, key, data);
    }
    async deriveBits() { throw notSupported('deriveBits()'); }
    async deriveKey() { throw notSupported('deriveKey()'); }
    async wrapKey() { throw notSupported('wrapKey()'); }
    async unwrapKey() { throw notSupported('unwrapKey()'); }
  }
  enumerable(SubtleCrypto.prototype, ['digest', 'generateKey', 'importKey', 'exportKey', 'sign', 'verify', 'encrypt', 'decrypt',
    'deriveBits', 'deriveKey', 'wrapKey', 'unwrapKey']);
  tag(SubtleCrypto.prototype, 'SubtleCrypto');

  const digits = [];
  for (let i = 0; i < 256; i++) digits.push((i + 256).toString(16).slice(1));
  const tagGetter = getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag).get;
  class Crypto {
    #subtle = new SubtleCrypto(secret);
    static {
      captured.neverClones((object) => #subtle in object || Object.getPrototypeOf(object) === SubtleCrypto.prototype);
    }
    constructor(key = undefined) { if (key !== secret) throw illegal(); }
    static #of(value) {
      if (typeof value !== 'object' || value === null || !(#subtle in value)) throw invalidThis('Crypto');
      return value;
    }
    get subtle() { return Crypto.#of(this).#subtle; }
    getRandomValues(array) {
      Crypto.#of(this);
      if (!isView(array) || !integerArrays.includes(captured.apply(tagGetter, array, []))) {
        throw new DOMException('The data argument must be an integer-type TypedArray', 'TypeMismatchError');
      }
      if (array.byteLength > 65_536) {
        throw new DOMException(
          `The requested length exceeds 65,536 bytes: it is ${array.byteLength} bytes`, 'QuotaExceededError');
      }
      new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(own.random(array.byteLength));
      return array;
    }
    randomUUID() {
      Crypto.#of(this);
      const bytes = own.random(16);
      bytes[6] = (bytes[6] & 0x0f) | 0x40;
      bytes[8] = (bytes[8] & 0x3f) | 0x80;
      let text = '';
      for (let i = 0; i < 16; i++) text += (i === 4 || i === 6 || i === 8 || i === 10 ? '-' : '') + digits[bytes[i]];
      return text;
    }
  }
  enumerable(Crypto.prototype, ['subtle', 'getRandomValues', 'randomUUID']);
  tag(Crypto.prototype, 'Crypto');

  return { crypto: new Crypto(secret), Crypto, CryptoKey, SubtleCrypto };
}
