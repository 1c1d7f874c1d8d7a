// `node:crypto`: digests, codes, keys from passwords, random values, AES. Other ciphers and key pairs are refused by name.
0,function (own, native, captured) {
  'use strict';
  const { ArrayBuffer, Buffer, Error, Math, Number, RangeError, TypeError, Uint8Array } = captured.globals;
  const { coded, toBuffer } = captured;
  const { argumentType, checks, error, range, unavailable } = captured.part('node_errors');
  const { Transform } = captured.part('node_stream').stream;
  const hashes = ['md5', 'sha1', 'sha224', 'sha256', 'sha384', 'sha512', 'sha512-224', 'sha512-256'];
  const nameOf = (name) => `${name}`.toLowerCase().replace(/^rsa-/, '').replace(/^sha-(\d)/, 'sha$1').replace('/', '-');
  const viewOf = (value, name, encoding = 'utf8') => {
    if (typeof value === 'string') return native.encode(value, encoding === 'buffer' ? 'utf8' : encoding ?? 'utf8');
    if (value instanceof Uint8Array) return value;
    if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    if (value instanceof ArrayBuffer) return new Uint8Array(value);
    if (value instanceof KeyObject) return value.export();
    throw argumentType(name, ['string', 'Buffer', 'TypedArray', 'DataView'], value);
  };
  const encoded = (bytes, encoding) => {
    const buffer = toBuffer(bytes);
    return encoding === undefined || encoding === null || encoding === 'buffer' ? buffer : buffer.toString(encoding);
  };
  const notSupported = () => new Error('Digest method not supported');

  class Running extends Transform {
    #run; #done = false;
    constructor(run, options) {
      super(options);
      this.#run = run;
    }
    update(data, encoding) {
      if (this.#done) throw error('ERR_CRYPTO_HASH_FINALIZED', 'Digest already called');
      if (typeof data !== 'string' && !ArrayBuffer.isView(data)) throw argumentType('data', ['string', 'Buffer', 'TypedArray', 'DataView'], data);
      this.#run(viewOf(data, 'data', encoding));
      return this;
    }
    digest(encoding) {
      if (this.#done) {
        if (this instanceof Hmac) return encoded(new Uint8Array(0), encoding);
        throw error('ERR_CRYPTO_HASH_FINALIZED', 'Digest already called');
      }
      this.#done = true;
      return encoded(this.#run(), encoding);
    }
    static copyOf(running) {
      if (running.#done) throw error('ERR_CRYPTO_HASH_FINALIZED', 'Digest already called');
      return running.#run(undefined, true);
    }
    _transform(chunk, encoding, callback) { this.update(chunk, encoding); callback(); }
    _flush(callback) { this.push(this.digest()); callback(); }
  }
  const { copyOf } = Running;
  delete Running.copyOf;
  class Hash extends Running {
    constructor(algorithm, options) {
      super(typeof algorithm === 'function' ? algorithm : start(algorithm), options);
    }
    copy(options) { return new Hash(copyOf(this), options); }
  }
  class Hmac extends Running {
    constructor(algorithm, key, options) {
      checks.string(algorithm, 'hmac');
      const run = own.hasher(nameOf(algorithm), viewOf(key, 'key', options?.encoding));
      if (run === undefined) throw error('ERR_CRYPTO_INVALID_DIGEST', `Invalid digest: ${algorithm}`, TypeError);
      super(run, options);
    }
  }
  const start = (algorithm) => {
    checks.string(algorithm, 'algorithm');
    const run = own.hasher(nameOf(algorithm));
    if (run === undefined) throw notSupported();
    return run;
  };
  class KeyObject {
    #bytes;
    constructor(bytes) { this.#bytes = bytes; }
    get type() { return 'secret'; }
    get symmetricKeySize() { return this.#bytes.length; }
    export(options = undefined) {
      if (options?.format === 'jwk') return { kty: 'oct', k: encoded(this.#bytes, 'base64url') };
      return toBuffer(this.#bytes.slice());
    }
    equals(other) { return own.equal(this.#bytes, other.export()); }
  }
  const later = (work, callback) => {
    let failed = null;
    let value;
    try { value = work(); } catch (thrown) { failed = thrown; }
    captured.globals.setImmediate(() => (failed === null ? callback(null, value) : callback(failed)));
  };

  const randomBytes = (size, callback = undefined) => {
    checks.number(size, 'size', 0, 2147483647);
    const make = () => toBuffer(own.random(size));
    if (callback === undefined) return make();
    checks.function(callback, 'callback');
    later(make, callback);
    return undefined;
  };
  const randomFillSync = (view, offset = 0, size = undefined) => {
    const bytes = viewOf(typeof view === 'string' ? undefined : view, 'buf');
    const unit = view.BYTES_PER_ELEMENT ?? 1;
    const from = offset * unit;
    const count = size === undefined ? bytes.length - from : size * unit;
    if (from > bytes.length || from < 0) throw range('offset', `>= 0 && <= ${bytes.length}`, offset);
    if (from + count > bytes.length) throw range('size + offset', `<= ${bytes.length}`, from + count);
    bytes.set(own.random(count), from);
    return view;
  };
  const randomFill = (view, ...more) => {
    const callback = more.pop();
    checks.function(callback, 'callback');
    later(() => randomFillSync(view, ...more), callback);
  };
  const randomInt = (low, high = undefined, callback = undefined) => {
    let [min, max, done] = [low, high, callback];
    if (max === undefined || typeof max === 'function') [min, max, done] = [0, low, high];
    if (!Number.isSafeInteger(min)) throw argumentType('min', 'a safe integer', min);
    if (!Number.isSafeInteger(max)) throw argumentType('max', 'a safe integer', max);
    if (max <= min) throw range('max', `greater than the value of "min" (${min})`, max);
    const span = max - min;
    if (span > 2 ** 48 - 1) throw range('max - min', `<= ${2 ** 48 - 1}`, span);
    const pick = () => {
      for (;;) {
        const number = own.random(6).reduce((sum, byte) => sum * 256 + byte, 0);
        if (number < 2 ** 48 - (2 ** 48 % span)) return min + (number % span);
      }
    };
    if (done === undefined) return pick();
    later(pick, done);
    return undefined;
  };
  const randomUUID = (options = undefined) => {
    if (options !== undefined) checks.object(options, 'options');
    const bytes = own.random(16);
    bytes[6] = (bytes[6] & 15) | 64;
    bytes[8] = (bytes[8] & 63) | 128;
    return encoded(bytes, 'hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  };
  const timingSafeEqual = (a, b) => {
    for (const [value, name] of [[a, 'buf1'], [b, 'buf2']]) {
      if (!ArrayBuffer.isView(value) && !(value instanceof ArrayBuffer)) throw argumentType(name, ['ArrayBuffer', 'Buffer', 'TypedArray', 'DataView'], value);
    }
    if (a.byteLength !== b.byteLength) {
      throw coded(new RangeError('Input buffers must have the same byte length'), 'ERR_CRYPTO_TIMING_SAFE_EQUAL_LENGTH');
    }
    return own.equal(viewOf(a, 'buf1'), viewOf(b, 'buf2'));
  };
  const pbkdf2Sync = (password, salt, iterations, keylen, digest) => {
    checks.string(digest, 'digest');
    const [secret, grain] = [viewOf(password, 'password'), viewOf(salt, 'salt')];
    checks.integer(iterations, 'iterations', 1, 2147483647);
    checks.integer(keylen, 'keylen', 0, 2147483647);
    const key = own.pbkdf2(nameOf(digest), secret, grain, iterations, keylen);
    if (key === undefined) throw error('ERR_CRYPTO_INVALID_DIGEST', `Invalid digest: ${digest}`, TypeError);
    return toBuffer(key);
  };
  const pbkdf2 = (password, salt, iterations, keylen, digest, callback) => {
    if (typeof digest === 'function') throw argumentType('digest', 'string', undefined);
    checks.function(callback, 'callback');
    later(() => pbkdf2Sync(password, salt, iterations, keylen, digest), callback);
  };
  const scryptSync = (password, salt, keylen, options = {}) => {
    const [secret, grain] = [viewOf(password, 'password'), viewOf(salt, 'salt')];
    checks.integer(keylen, 'keylen', 0, 2147483647);
    const n = options.N ?? options.cost ?? 16384;
    const r = options.r ?? options.blockSize ?? 8;
    const p = options.p ?? options.parallelization ?? 1;
    const maxmem = options.maxmem ?? 33554432;
    const invalid = (why) => error('ERR_CRYPTO_INVALID_SCRYPT_PARAMS', `Invalid scrypt params${why}`, RangeError);
    const log = Math.log2(n);
    if (n < 2 || !Number.isInteger(log) || r < 1 || p < 1) throw invalid('');
    if (128 * n * r > maxmem) throw invalid(': memory limit exceeded');
    return toBuffer(own.scrypt(secret, grain, [log, r, p], keylen));
  };
  const scrypt = (password, salt, keylen, ...more) => {
    const callback = more.pop();
    checks.function(callback, 'callback');
    later(() => scryptSync(password, salt, keylen, more[0]), callback);
  };
  const hkdfSync = (digest, key, salt, info, keylen) => {
    checks.string(digest, 'digest');
    checks.integer(keylen, 'length', 0, 2147483647);
    const [bytes, grain, context] = [viewOf(key, 'key'), viewOf(salt, 'salt'), viewOf(info, 'info')];
    const mac = (secret, ...parts) => {
      const run = own.hasher(nameOf(digest), secret);
      if (run === undefined) throw error('ERR_CRYPTO_INVALID_DIGEST', `Invalid digest: ${digest}`, TypeError);
      for (const part of parts) run(part);
      return run();
    };
    const size = mac(new Uint8Array(0)).length;
    if (keylen > 255 * size) throw error('ERR_CRYPTO_INVALID_KEYLEN', 'Invalid key length', RangeError);
    const main = mac(grain.length === 0 ? new Uint8Array(size) : grain, bytes);
    const result = new Uint8Array(keylen);
    let last = new Uint8Array(0);
    for (let at = 0, round = 1; at < keylen; at += size, round++) {
      last = mac(main, last, context, new Uint8Array([round]));
      result.set(last.subarray(0, keylen - at), at);
    }
    return result.buffer;
  };
  const hkdf = (digest, key, salt, info, keylen, callback) => {
    checks.function(callback, 'callback');
    later(() => hkdfSync(digest, key, salt, info, keylen), callback);
  };
  function createHash(algorithm, options) { return new Hash(algorithm, options); }
  function createHmac(algorithm, key, options) { return new Hmac(algorithm, key, options); }
  const crypto = {
    createHash, createHmac, Hash, Hmac, KeyObject, getHashes: () => [...hashes], getCurves: () => [], randomBytes,
    pseudoRandomBytes: randomBytes, rng: randomBytes, prng: randomBytes, randomFillSync, randomFill, randomInt, randomUUID, timingSafeEqual, pbkdf2, pbkdf2Sync, scrypt,
    scryptSync, hkdf, hkdfSync, constants: {}, getFips: () => 0,
    hash: (algorithm, data, encoding = 'hex') => createHash(algorithm).update(data).digest(encoding),
    createSecretKey: (key, encoding) => new KeyObject(new Uint8Array(viewOf(key, 'key', encoding))),
    get webcrypto() { return captured.globals.crypto; }, get subtle() { return captured.globals.crypto.subtle; },
    getRandomValues: (view) => captured.globals.crypto.getRandomValues(view),
  };
  Object.assign(crypto, captured.part('node_ciphers').make(own, { viewOf, encoded }));
  for (const name of ['createSign', 'createVerify', 'sign', 'verify', 'createPublicKey', 'createPrivateKey',
    'generateKeyPair', 'generateKeyPairSync', 'generateKey', 'generateKeySync', 'createDiffieHellman', 'getDiffieHellman', 'createECDH', 'diffieHellman', 'publicEncrypt',
    'publicDecrypt', 'privateEncrypt', 'privateDecrypt', 'generatePrime', 'generatePrimeSync', 'checkPrime', 'checkPrimeSync']) {
    crypto[name] = { [name]() { throw unavailable(`crypto.${name}`, 'crypto.subtle has AES-GCM, and verifies ECDSA and Ed25519'); } }[name];
  }
  return { crypto };
}
