// `node:zlib`: gzip, deflate, raw deflate and the expansion of Brotli, at once, with callbacks, and as streams. To compress with Brotli,
// and Zstandard, are refused by name.
0,function (own, native, captured) {
  'use strict';
  const { ArrayBuffer, Buffer, Error, Object, RangeError, Symbol, Uint8Array, process } = captured.globals;
  const { coded, toBuffer } = captured;
  const { argumentType, checks, range, unavailable } = captured.part('node_errors');
  const { Transform } = captured.part('node_stream').stream;
  const constants = {
    Z_NO_FLUSH: 0, Z_PARTIAL_FLUSH: 1, Z_SYNC_FLUSH: 2, Z_FULL_FLUSH: 3, Z_FINISH: 4, Z_BLOCK: 5, Z_OK: 0, Z_STREAM_END: 1, Z_NEED_DICT: 2,
    Z_ERRNO: -1, Z_STREAM_ERROR: -2, Z_DATA_ERROR: -3, Z_MEM_ERROR: -4, Z_BUF_ERROR: -5, Z_VERSION_ERROR: -6, Z_NO_COMPRESSION: 0,
    Z_BEST_SPEED: 1, Z_BEST_COMPRESSION: 9, Z_DEFAULT_COMPRESSION: -1, Z_FILTERED: 1, Z_HUFFMAN_ONLY: 2, Z_RLE: 3, Z_FIXED: 4,
    Z_DEFAULT_STRATEGY: 0, DEFLATE: 1, INFLATE: 2, GZIP: 3, GUNZIP: 4, DEFLATERAW: 5, INFLATERAW: 6, UNZIP: 7, Z_MIN_WINDOWBITS: 8,
    Z_MAX_WINDOWBITS: 15, Z_DEFAULT_WINDOWBITS: 15, Z_MIN_CHUNK: 64, Z_MAX_CHUNK: Infinity, Z_DEFAULT_CHUNK: 16384, Z_MIN_MEMLEVEL: 1,
    Z_MAX_MEMLEVEL: 9, Z_DEFAULT_MEMLEVEL: 8, Z_MIN_LEVEL: -1, Z_MAX_LEVEL: 9, Z_DEFAULT_LEVEL: -1,
    BROTLI_DECODE: 8, BROTLI_ENCODE: 9, BROTLI_OPERATION_PROCESS: 0, BROTLI_OPERATION_FLUSH: 1, BROTLI_OPERATION_FINISH: 2,
    BROTLI_OPERATION_EMIT_METADATA: 3, BROTLI_PARAM_MODE: 0, BROTLI_MODE_GENERIC: 0, BROTLI_MODE_TEXT: 1, BROTLI_MODE_FONT: 2,
    BROTLI_PARAM_QUALITY: 1, BROTLI_MIN_QUALITY: 0, BROTLI_MAX_QUALITY: 11, BROTLI_DEFAULT_QUALITY: 11, BROTLI_PARAM_LGWIN: 2,
    BROTLI_MIN_WINDOW_BITS: 10, BROTLI_MAX_WINDOW_BITS: 24, BROTLI_DEFAULT_WINDOW: 22, BROTLI_PARAM_LGBLOCK: 3, BROTLI_PARAM_SIZE_HINT: 5,
    BROTLI_DECODER_PARAM_LARGE_WINDOW: 1,
  };
  const MOST = 67108864;
  const bytesOf = (value) => {
    if (typeof value === 'string') return native.encode(value, 'utf8');
    if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    if (value instanceof ArrayBuffer) return new Uint8Array(value);
    throw argumentType('buffer', ['string', 'Buffer', 'TypedArray', 'DataView', 'ArrayBuffer'], value);
  };
  const fail = (message, code, errno) => {
    const failed = coded(new Error(message), code);
    failed.errno = errno;
    return failed;
  };
  const problemOf = (message) => {
    if (message === 'unexpected end of file') return fail(message, 'Z_BUF_ERROR', -5);
    const brotli = /^brotli (-\d+) (.+)$/.exec(message);
    if (brotli !== null) return fail('Decompression failed', `ERR_${brotli[2]}`, +brotli[1]);
    return fail(message, 'Z_DATA_ERROR', -3);
  };
  const levelOf = (options) => {
    if (options?.dictionary !== undefined) throw unavailable('zlib with a dictionary', 'only plain formats are supported');
    const level = options?.level ?? -1;
    if (typeof level !== 'number') throw argumentType('options.level', 'number', level);
    if (!(level >= -1 && level <= 9)) throw range('options.level', '>= -1 and <= 9', level);
    return level === -1 ? 6 : level;
  };
  const formats = { Gzip: 'gzip', Gunzip: 'gzip', Deflate: 'deflate', Inflate: 'deflate', DeflateRaw: 'raw', InflateRaw: 'raw', Unzip: 'unzip', BrotliDecompress: 'brotli' };
  const opens = { __proto__: null, Gunzip: true, Inflate: true, InflateRaw: true, Unzip: true, BrotliDecompress: true };
  const run = (kind, input, options) => {
    const bytes = bytesOf(input);
    if (options?.maxOutputLength !== undefined) checks.integer(options.maxOutputLength, 'options.maxOutputLength', 1, 2 ** 31 - 1);
    const most = Math.min(options?.maxOutputLength ?? MOST, MOST);
    if (!opens[kind]) return toBuffer(own.compress(formats[kind], levelOf(options), bytes));
    levelOf({ ...options, level: -1 });
    const { Z_SYNC_FLUSH, BROTLI_OPERATION_FLUSH } = constants;
    const partial = options?.finishFlush === (kind === 'BrotliDecompress' ? BROTLI_OPERATION_FLUSH : Z_SYNC_FLUSH);
    const [output, problem] = own.expand(formats[kind], bytes, most, partial);
    if (problem === undefined) return toBuffer(output);
    if (problem === 'too large') throw coded(new RangeError(`Cannot create a Buffer larger than ${most} bytes`), 'ERR_BUFFER_TOO_LARGE');
    throw problemOf(problem);
  };
  const { Math } = captured.globals;

  // A stream that writes pieces as they come; an expanding one checks the end when all is there.
  class Zip extends Transform {
    #coder; #options;
    constructor(kind, options) {
      super({ ...options, objectMode: false });
      this.bytesWritten = 0;
      this.#options = { kind, level: opens[kind] ? 6 : levelOf(options), options };
    }
    _transform(chunk, _encoding, callback) {
      this.bytesWritten += chunk.length;
      try {
        const { kind, level } = this.#options;
        this.#coder ??= own.coder(kind === 'Unzip' ? (chunk[0] === 0x1f ? 'gzip' : 'deflate') : formats[kind], opens[kind] === true, level);
        const output = this.#coder(chunk, false);
        if (output.length > 0) this.push(toBuffer(output));
        callback();
      } catch (thrown) {
        callback(this.#problem(thrown));
      }
    }
    #problem(thrown) {
      if (/header/.test(thrown.message)) return fail('incorrect header check', 'Z_DATA_ERROR', -3);
      return problemOf(thrown.message);
    }
    _flush(callback) {
      try {
        const { kind, level } = this.#options;
        if (this.#coder === undefined && opens[kind]) { callback(); return; }
        this.#coder ??= own.coder(formats[kind], false, level);
        const output = this.#coder(new Uint8Array(0), true);
        if (output.length > 0) this.push(toBuffer(output));
        callback();
      } catch (thrown) {
        callback(this.#problem(thrown));
      }
    }
    flush(kindOrCallback, callback = kindOrCallback) { if (typeof callback === 'function') process.nextTick(callback); }
    params(_level, _strategy, callback) { process.nextTick(callback); }
    close(callback) { if (typeof callback === 'function') this.once('close', callback); this.destroy(); }
  }
  const zlib = { constants, codes: { Z_OK: 0, Z_STREAM_END: 1, Z_NEED_DICT: 2, Z_ERRNO: -1, Z_STREAM_ERROR: -2, Z_DATA_ERROR: -3, Z_MEM_ERROR: -4, Z_BUF_ERROR: -5 } };
  Object.assign(zlib, constants);
  const kPromisify = Symbol.for('nodejs.util.promisify.custom');
  for (const kind of Object.keys(formats)) {
    const lower = kind[0].toLowerCase() + kind.slice(1);
    const Class = { [kind]: class extends Zip { constructor(options) { super(kind, options); } } }[kind];
    zlib[kind] = Class;
    zlib[`create${kind}`] = (options) => new Class(options);
    zlib[`${lower}Sync`] = (input, options) => run(kind, input, options);
    zlib[lower] = (input, optionsOrCallback, last = undefined) => {
      const callback = typeof optionsOrCallback === 'function' ? optionsOrCallback : last;
      checks.function(callback, 'callback');
      bytesOf(input);
      let failed = null;
      let output;
      try { output = run(kind, input, typeof optionsOrCallback === 'function' ? undefined : optionsOrCallback); } catch (thrown) { failed = thrown; }
      captured.globals.setImmediate(() => (failed === null ? callback(null, output) : callback(failed)));
    };
  }
  let table;
  zlib.crc32 = (data, value = 0) => {
    table ??= Array.from({ length: 256 }, (_, byte) => { let c = byte; for (let i = 0; i < 8; i++) c = c & 1 ? 0xEDB88320 ^ (c >>> 1) : c >>> 1; return c >>> 0; });
    let crc = ~value;
    for (const byte of bytesOf(data)) crc = table[(crc ^ byte) & 255] ^ (crc >>> 8);
    return ~crc >>> 0;
  };
  const { Array } = captured.globals;
  for (const name of ['brotliCompress', 'brotliCompressSync', 'createBrotliCompress',
    'zstdCompress', 'zstdCompressSync', 'zstdDecompress', 'zstdDecompressSync', 'createZstdCompress', 'createZstdDecompress']) {
    zlib[name] = { [name]() { throw unavailable(`zlib.${name}`, 'gzip, deflate and raw deflate are there, and Brotli is expanded'); } }[name];
  }
  return { zlib };
}
