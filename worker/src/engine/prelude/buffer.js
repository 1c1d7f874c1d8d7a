// Buffer: the honest subset of Node's that reading files needs. A Uint8Array with text conversions.
0,function (native, captured) {
  'use strict';
  const global = globalThis;
  const { defineProperty, setPrototypeOf } = Object;
  const { encode, decode } = native;
  const isView = ArrayBuffer.isView;
  const { floor, min } = Math;
  const { apply } = Reflect;
  const RangeErrorCtor = RangeError;
  const own = (view) => setPrototypeOf(view, Buffer.prototype);
  const bytesOf = (value, name) => {
    if (typeof value === 'string') return encode(value, 'utf8');
    if (value instanceof Uint8Array) return value;
    throw typeError(`The "${name}" argument must be of type string or an instance of Buffer or Uint8Array.`);
  };
  const typeError = (message) => {
    const error = new TypeError(message);
    error.code = 'ERR_INVALID_ARG_TYPE';
    return error;
  };

  const checkSizeOf = (size) => {
    if (typeof size === 'number' && size >= 0 && size <= 4294967296) return;
    if (typeof size !== 'number') throw errors().argumentType('size', 'number', size);
    throw errors().range('size', '>= 0 && <= 4294967296', size);
  };
  class Buffer extends Uint8Array {
    static from(value, encodingOrOffset, length) {
      if (typeof value === 'string') return own(encode(value, encodingOrOffset ?? 'utf8'));
      if (value instanceof ArrayBuffer || value instanceof SharedArrayBuffer) {
        return new Buffer(value, encodingOrOffset, length);
      }
      if (isView(value) || Array.isArray(value)) return own(new Uint8Array(value));
      if (value !== null && typeof value === 'object' && value.type === 'Buffer' && Array.isArray(value.data)) {
        return own(new Uint8Array(value.data));
      }
      if (value !== null && typeof value === 'object') {
        const primitive = value.valueOf?.();
        if (primitive !== value && primitive !== undefined && primitive !== null) return Buffer.from(primitive, encodingOrOffset, length);
        if (typeof value[Symbol.toPrimitive] === 'function') return Buffer.from(value[Symbol.toPrimitive]('string'), encodingOrOffset, length);
        if (typeof value.length === 'number') return own(new Uint8Array(Array.from(value)));
      }
      throw typeError('The first argument must be of type string or an instance of Buffer, ArrayBuffer, or Array or an Array-like Object. ' +
        `Received ${errors().received(value)}`);
    }
    static alloc(size, fill, encoding) {
      checkSizeOf(size);
      const buffer = new Buffer(size);
      return fill === undefined ? buffer : buffer.fill(fill, 0, size, encoding);
    }
    static allocUnsafe(size) { return Buffer.alloc(size); }
    static concat(list, length) {
      if (!Array.isArray(list)) throw typeError('The "list" argument must be an instance of Array.');
      const total = length ?? list.reduce((sum, part) => sum + part.length, 0);
      const buffer = new Buffer(total);
      let at = 0;
      for (const part of list) {
        if (at >= total) break;
        const fits = at + part.length > total ? part.subarray(0, total - at) : part;
        buffer.set(fits, at);
        at += fits.length;
      }
      return buffer;
    }
    static isBuffer(value) { return value instanceof Buffer; }
    static isEncoding(name) {
      try { encode('', String(name)); return true; } catch { return false; }
    }
    static byteLength(value, encoding) {
      return typeof value === 'string' ? encode(value, encoding ?? 'utf8').length : value.byteLength;
    }
    static compare(a, b) {
      const shared = Math.min(a.length, b.length);
      for (let i = 0; i < shared; i++) if (a[i] !== b[i]) return a[i] < b[i] ? -1 : 1;
      return Math.sign(a.length - b.length);
    }
    toString(encoding, start, end) {
      const part = start === undefined && end === undefined ? this : this.subarray(start, end);
      return decode(part, encoding ?? 'utf8', false);
    }
    toJSON() { return { type: 'Buffer', data: Array.from(this) }; }
    equals(other) { return Buffer.compare(this, other) === 0; }
    compare(other) { return Buffer.compare(this, other); }
    slice(start, end) { return this.subarray(start, end); }
    write(text, offset = 0, length, encoding) {
      if (typeof length === 'string') { encoding = length; length = undefined; }
      if (typeof offset === 'string') { encoding = offset; offset = 0; }
      const bytes = encode(text, encoding ?? 'utf8').subarray(0, Math.min(length ?? Infinity, this.length - offset));
      this.set(bytes, offset);
      return bytes.length;
    }
    fill(value, start = 0, end = this.length, encoding) {
      if (typeof value === 'number') return super.fill(value, start, end);
      const bytes = typeof value === 'string' ? encode(value, encoding ?? 'utf8') : value;
      if (bytes.length === 0) return super.fill(0, start, end);
      for (let i = start; i < end; i++) this[i] = bytes[(i - start) % bytes.length];
      return this;
    }
    copy(target, targetStart = 0, start = 0, end = this.length) {
      const part = this.subarray(start, Math.min(end, start + target.length - targetStart));
      target.set(part, targetStart);
      return part.length;
    }
    indexOf(value, from = 0, encoding) {
      if (typeof value === 'number') return super.indexOf(value & 255, from);
      const bytes = typeof value === 'string' ? encode(value, encoding ?? 'utf8') : bytesOf(value, 'value');
      if (bytes.length === 0) return Math.min(from, this.length);
      for (let at = super.indexOf(bytes[0], from); at !== -1; at = super.indexOf(bytes[0], at + 1)) {
        let i = 1;
        while (i < bytes.length && this[at + i] === bytes[i]) i++;
        if (i === bytes.length) return at;
      }
      return -1;
    }
    includes(value, from, encoding) { return this.indexOf(value, from, encoding) !== -1; }
    lastIndexOf(value, from = this.length, encoding = undefined) {
      if (typeof from === 'string') { encoding = from; from = this.length; }
      from = +from;
      if (from !== from) from = this.length;
      if (from < 0) from += this.length;
      if (typeof value === 'number') return from < 0 ? -1 : super.lastIndexOf(value & 255, from);
      const bytes = typeof value === 'string' ? encode(value, encoding ?? 'utf8') : bytesOf(value, 'value');
      for (let at = min(from, this.length - bytes.length); at >= 0; at--) {
        let i = 0;
        while (i < bytes.length && this[at + i] === bytes[i]) i++;
        if (i === bytes.length) return at;
      }
      return -1;
    }
    swap16() { return swap(this, 2); }
    swap32() { return swap(this, 4); }
    swap64() { return swap(this, 8); }
    static copyBytesFrom(view, offset = 0, length = undefined) {
      const part = view.subarray(offset, length === undefined ? undefined : offset + length);
      return Buffer.from(part.buffer.slice(part.byteOffset, part.byteOffset + part.byteLength));
    }
    static allocUnsafeSlow(size) { return Buffer.alloc(size); }
    get parent() { return this.buffer; }
    get offset() { return this.byteOffset; }
    toLocaleString(encoding, start, end) { return this.toString(encoding, start, end); }
  }
  const swap = (buffer, size) => {
    if (buffer.length % size !== 0) {
      throw captured.coded(new RangeErrorCtor(`Buffer size must be a multiple of ${size * 8}-bits`), 'ERR_INVALID_BUFFER_SIZE');
    }
    for (let at = 0; at < buffer.length; at += size) {
      for (let i = 0; i < size / 2; i++) {
        const byte = buffer[at + i];
        buffer[at + i] = buffer[at + size - 1 - i];
        buffer[at + size - 1 - i] = byte;
      }
    }
    return buffer;
  };
  defineProperty(Buffer, 'poolSize', { value: 8192, writable: true, configurable: true, enumerable: true });
  const errors = () => captured.part('node_errors');
  const checkOffset = (buffer, offset, size) => {
    if (typeof offset !== 'number') throw errors().argumentType('offset', 'number', offset);
    if (offset % 1 !== 0) throw errors().range('offset', 'an integer', offset);
    if (buffer.length < size) {
      throw captured.coded(new RangeErrorCtor('Attempt to access memory outside buffer bounds'), 'ERR_BUFFER_OUT_OF_BOUNDS');
    }
    if (offset < 0 || offset + size > buffer.length) throw errors().range('offset', `>= 0 and <= ${buffer.length - size}`, offset);
  };
  const checkValue = (value, size, signed) => {
    const low = signed ? -(2 ** (8 * size - 1)) : 0;
    const high = signed ? 2 ** (8 * size - 1) - 1 : 2 ** (8 * size) - 1;
    if (value >= low && value <= high) return;
    if (value !== value) return;
    const mark = typeof value === 'bigint' ? 'n' : '';
    const power = (bits) => `2${mark} ** ${bits}${mark}`;
    const wide = signed ? `>= -(${power(8 * size - 1)}) and < ${power(8 * size - 1)}` : `>= 0${mark} and < ${power(8 * size)}`;
    throw errors().range('value', size > 4 ? wide : `>= ${low} and <= ${high}`, value);
  };
  // Whole numbers of up to six bytes.
  for (const signed of [false, true]) {
    for (const little of [false, true]) {
      const name = `${signed ? 'Int' : 'UInt'}${little ? 'LE' : 'BE'}`;
      const at = (i, size) => (little ? i : size - 1 - i);
      const checkSize = (size) => {
        if (typeof size !== 'number') throw errors().argumentType('byteLength', 'number', size);
        if (!(size >= 1 && size <= 6)) throw errors().range('byteLength', '>= 1 and <= 6', size);
      };
      const define = (key, value) => defineProperty(Buffer.prototype, key, { value, writable: true, configurable: true });
      define(`read${name}`, function (offset, size) {
        checkSize(size);
        checkOffset(this, offset, size);
        let sum = 0;
        for (let i = 0; i < size; i++) sum += this[offset + at(i, size)] * 2 ** (8 * i);
        return signed && sum >= 2 ** (8 * size - 1) ? sum - 2 ** (8 * size) : sum;
      });
      define(`write${name}`, function (value, offset, size) {
        checkSize(size);
        checkValue(+value, size, signed);
        checkOffset(this, offset, size);
        let rest = value < 0 ? value + 2 ** (8 * size) : +value;
        for (let i = 0; i < size; i++) {
          this[offset + at(i, size)] = rest % 256;
          rest = floor(rest / 256);
        }
        return offset + size;
      });
    }
  }
  const numbers = [
    ['UInt8', 'Uint8', 1], ['Int8', 'Int8', 1], ['UInt16', 'Uint16', 2], ['Int16', 'Int16', 2], ['UInt32', 'Uint32', 4],
    ['Int32', 'Int32', 4], ['Float', 'Float32', 4], ['Double', 'Float64', 8], ['BigInt64', 'BigInt64', 8],
    ['BigUInt64', 'BigUint64', 8],
  ];
  for (const [name, method, size] of numbers) {
    const read = DataView.prototype[`get${method}`];
    const write = DataView.prototype[`set${method}`];
    for (const [end, little] of size === 1 ? [['', true]] : [['LE', true], ['BE', false]]) {
      const view = (buffer) => new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength);
      const define = (key, value) =>
        defineProperty(Buffer.prototype, key, { value, writable: true, configurable: true });
      const whole = !name.startsWith('F') && !name.startsWith('D');
      define(`read${name}${end}`, function (offset = 0) {
        checkOffset(this, offset, size);
        return captured.apply(read, view(this), [offset, little]);
      });
      define(`write${name}${end}`, function (value, offset = 0) {
        if (whole) checkValue(size === 8 ? value : +value, size, /^(Big)?I/.test(name));
        checkOffset(this, offset, size);
        captured.apply(write, view(this), [offset, value, little]);
        return offset + size;
      });
    }
  }
  for (const key of Object.getOwnPropertyNames(Buffer.prototype)) {
    if (!key.includes('UInt')) continue;
    defineProperty(Buffer.prototype, key.replace('UInt', 'Uint'), { value: Buffer.prototype[key], writable: true, configurable: true });
  }
  captured.toBuffer = own;
  // As a function it may be called without `new`, and its functions are enumerable: older packages copy them.
  const callable = { Buffer(value, encodingOrOffset, length) {
    if (typeof value !== 'number') return Buffer.from(value, encodingOrOffset, length);
    if (typeof encodingOrOffset === 'string') throw errors().argumentType('string', 'string', value);
    return Buffer.alloc(value);
  } };
  const BufferFunction = function (...args) { return apply(callable.Buffer, undefined, args); };
  defineProperty(BufferFunction, 'name', { value: 'Buffer', configurable: true });
  for (const key of Reflect.ownKeys(Buffer)) {
    if (key === 'length' || key === 'name' || key === 'prototype') continue;
    defineProperty(BufferFunction, key, { value: Buffer[key], writable: true, configurable: true, enumerable: true });
  }
  defineProperty(BufferFunction, 'prototype', { value: Buffer.prototype, writable: false });
  defineProperty(Buffer.prototype, 'constructor', { value: BufferFunction, writable: true, configurable: true });
  setPrototypeOf(BufferFunction, Uint8Array);
  defineProperty(global, 'Buffer', { value: BufferFunction, writable: true, configurable: true });
}
