// `createCipheriv` and `createDecipheriv` of `node:crypto`: AES in CBC, CTR and GCM.
0,function (_own, _native, captured) {
  'use strict';
  const { Error, RangeError, TypeError, Uint8Array } = captured.globals;
  const { argumentValue, error, argumentType } = captured.part('node_errors');
  const { Transform } = captured.part('node_stream').stream;
  const NONE = new Uint8Array(0);
  const BLOCK = 16;
  const names = [128, 192, 256].flatMap((bits) => ['cbc', 'ctr', 'gcm'].map((mode) => `aes-${bits}-${mode}`));
  const joined = (left, right) => {
    const all = new Uint8Array(left.length + right.length);
    all.set(left);
    all.set(right, left.length);
    return all;
  };
  const state = () => error('ERR_CRYPTO_INVALID_STATE', 'Invalid state for operation');

  const make = (own, { viewOf, encoded }) => {
    class Cipher extends Transform {
      #encrypt; #mode; #key; #iv; #rest = NONE; #at = 0; #seen = []; #extra = NONE; #tag; #tagLength; #padding = true; #done = false;
      constructor(encrypt, cipher, key, iv, options) {
        super(options);
        if (typeof cipher !== 'string') throw argumentType('cipher', 'string', cipher);
        const match = /^(?:id-)?aes-?(128|192|256)-?(cbc|ctr|gcm)$/.exec(cipher.toLowerCase());
        if (match === null) throw error('ERR_CRYPTO_UNKNOWN_CIPHER', 'Unknown cipher');
        this.#encrypt = encrypt;
        this.#mode = match[2];
        this.#key = new Uint8Array(viewOf(key, 'key'));
        this.#iv = new Uint8Array(iv === null ? NONE : viewOf(iv, 'iv'));
        if (this.#key.length * 8 !== +match[1]) throw error('ERR_CRYPTO_INVALID_KEYLEN', 'Invalid key length', RangeError);
        if (this.#mode === 'gcm' && this.#iv.length !== 12) throw error('ERR_CRYPTO_INVALID_IV', 'Invalid initialization vector: in sessions that of GCM has 12 bytes', TypeError);
        if (this.#mode !== 'gcm' && this.#iv.length !== BLOCK) throw error('ERR_CRYPTO_INVALID_IV', 'Invalid initialization vector', TypeError);
        this.#tagLength = options?.authTagLength ?? 16;
        if (this.#mode === 'gcm' && this.#tagLength !== 16) throw argumentValue('options.authTagLength', options.authTagLength, 'must be 16 in sessions');
      }
      #run(bytes) {
        if (this.#mode === 'cbc') {
          const all = joined(this.#rest, bytes);
          // The last block of a padded text is known to be the last only at the end.
          const held = !this.#encrypt && this.#padding && all.length % BLOCK === 0 ? BLOCK : all.length % BLOCK;
          const whole = all.subarray(0, all.length < held ? 0 : all.length - held);
          this.#rest = all.slice(whole.length);
          if (whole.length === 0) return NONE;
          const result = own.aesCbc(this.#encrypt, this.#key, this.#iv, whole);
          this.#iv = (this.#encrypt ? result : whole).slice(-BLOCK);
          return result;
        }
        let counter = this.#iv;
        if (this.#mode === 'gcm') {
          counter = joined(this.#iv, Uint8Array.of(0, 0, 0, 2));
          this.#seen.push(bytes.slice());
        }
        const result = own.aesCtr(this.#key, counter, this.#at, bytes);
        this.#at += bytes.length;
        return result;
      }
      #whole() {
        const all = new Uint8Array(this.#at);
        let at = 0;
        for (const piece of this.#seen) { all.set(piece, at); at += piece.length; }
        return all;
      }
      #end() {
        if (this.#mode === 'ctr') return NONE;
        if (this.#mode === 'gcm') {
          if (this.#encrypt) this.#tag = own.aesGcm(true, this.#key, this.#iv, this.#extra, this.#whole()).slice(-BLOCK);
          else if (this.#tag === undefined || own.aesGcm(false, this.#key, this.#iv, this.#extra, joined(this.#whole(), this.#tag)) === undefined) {
            throw new Error('Unsupported state or unable to authenticate data');
          }
          this.#seen = [];
          return NONE;
        }
        if (!this.#padding) {
          if (this.#rest.length === 0) return NONE;
          throw error('ERR_OSSL_WRONG_FINAL_BLOCK_LENGTH', 'error:1C80006B:Provider routines::wrong final block length');
        }
        if (this.#encrypt) {
          const missing = BLOCK - this.#rest.length;
          return own.aesCbc(true, this.#key, this.#iv, joined(this.#rest, new Uint8Array(missing).fill(missing)));
        }
        if (this.#rest.length !== BLOCK) throw error('ERR_OSSL_WRONG_FINAL_BLOCK_LENGTH', 'error:1C80006B:Provider routines::wrong final block length');
        const last = own.aesCbc(false, this.#key, this.#iv, this.#rest);
        const padding = last[BLOCK - 1];
        if (padding < 1 || padding > BLOCK || last.subarray(BLOCK - padding).some((byte) => byte !== padding)) {
          throw error('ERR_OSSL_BAD_DECRYPT', 'error:1C800064:Provider routines::bad decrypt');
        }
        return last.slice(0, BLOCK - padding);
      }
      update(data, inputEncoding = undefined, outputEncoding = undefined) {
        if (this.#done) throw state();
        return encoded(this.#run(viewOf(data, 'data', inputEncoding)), outputEncoding);
      }
      final(outputEncoding = undefined) {
        if (this.#done) throw state();
        const result = this.#end();
        this.#done = true;
        return encoded(result, outputEncoding);
      }
      setAutoPadding(on = true) {
        if (this.#done) throw state();
        this.#padding = !!on;
        return this;
      }
      setAAD(bytes) {
        if (this.#mode !== 'gcm' || this.#done || this.#at > 0) throw state();
        this.#extra = joined(this.#extra, viewOf(bytes, 'buffer'));
        return this;
      }
      getAuthTag() {
        if (this.#mode !== 'gcm' || !this.#encrypt || !this.#done) throw state();
        return encoded(this.#tag.slice());
      }
      setAuthTag(tag, encoding = undefined) {
        const bytes = viewOf(tag, 'buffer', encoding);
        if (this.#mode !== 'gcm' || this.#encrypt || this.#done) throw state();
        if (bytes.length !== BLOCK) throw error('ERR_CRYPTO_INVALID_AUTH_TAG', `Invalid authentication tag length: ${bytes.length}`, TypeError);
        this.#tag = bytes.slice();
        return this;
      }
      _transform(chunk, encoding, callback) {
        try { this.push(this.update(chunk, encoding)); } catch (thrown) { callback(thrown); return; }
        callback();
      }
      _flush(callback) {
        try { this.push(this.final()); } catch (thrown) { callback(thrown); return; }
        callback();
      }
    }
    class Cipheriv extends Cipher { constructor(cipher, key, iv, options) { super(true, cipher, key, iv, options); } }
    class Decipheriv extends Cipher { constructor(cipher, key, iv, options) { super(false, cipher, key, iv, options); } }
    return {
      Cipheriv, Decipheriv, getCiphers: () => [...names],
      createCipheriv: (cipher, key, iv, options = undefined) => new Cipheriv(cipher, key, iv, options),
      createDecipheriv: (cipher, key, iv, options = undefined) => new Decipheriv(cipher, key, iv, options),
    };
  };
  return { make };
}
