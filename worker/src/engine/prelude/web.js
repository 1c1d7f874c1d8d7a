// Small parts of the web platform: TextEncoder, TextDecoder, atob, btoa, structuredClone.
0,function (native, captured) {
  'use strict';
  const global = globalThis;
  const { defineProperty } = Object;
  const { apply } = captured;
  const { getTime } = Date.prototype;
  const eachOfMap = Map.prototype.forEach;
  const eachOfSet = Set.prototype.forEach;
  const { encode, decode } = native;
  const hidden = (name, value) => defineProperty(global, name, { value, writable: true, configurable: true });

  class TextEncoder {
    get encoding() { return 'utf-8'; }
    encode(text = '') { return encode(String(text), 'utf8'); }
    encodeInto(text, target) {
      let read = 0;
      let written = 0;
      for (const character of String(text)) {
        const bytes = encode(character, 'utf8');
        if (written + bytes.length > target.length) break;
        target.set(bytes, written);
        written += bytes.length;
        read += character.length;
      }
      return { read, written };
    }
  }
  class TextDecoder {
    #encoding; #fatal; #ignoreBOM; #decode;
    constructor(label = 'utf-8', options = undefined) {
      const encoding = native.encodingOf(`${label}`);
      if (encoding === undefined) {
        const error = new RangeError(`The "${label}" encoding is not supported`);
        error.code = 'ERR_ENCODING_NOT_SUPPORTED';
        throw error;
      }
      this.#encoding = encoding;
      this.#fatal = Boolean(options?.fatal);
      this.#ignoreBOM = Boolean(options?.ignoreBOM);
    }
    get encoding() { return this.#encoding; }
    get fatal() { return this.#fatal; }
    get ignoreBOM() { return this.#ignoreBOM; }
    decode(input = undefined, options = undefined) {
      const stream = Boolean(options?.stream);
      let bytes;
      if (input === undefined) bytes = new Uint8Array(0);
      else if (input instanceof Uint8Array) bytes = input;
      else if (ArrayBuffer.isView(input)) bytes = new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
      else if (input instanceof ArrayBuffer || input instanceof SharedArrayBuffer) bytes = new Uint8Array(input);
      else {
        const error = new TypeError('The "input" argument must be an instance of ArrayBuffer or ArrayBufferView.');
        error.code = 'ERR_INVALID_ARG_TYPE';
        throw error;
      }
      const decoder = this.#decode ?? native.decoder(this.#encoding, this.#fatal, this.#ignoreBOM);
      // What a chunk ends with may belong to a character of the next one.
      this.#decode = stream ? decoder : undefined;
      const text = decoder(bytes, !stream);
      if (text === undefined) {
        this.#decode = undefined;
        const error = new TypeError(`The encoded data was not valid for encoding ${this.#encoding}`);
        error.code = 'ERR_ENCODING_INVALID_ENCODED_DATA';
        throw error;
      }
      return text;
    }
  }
  hidden('TextEncoder', TextEncoder);
  hidden('TextDecoder', TextDecoder);

  const invalid = (message) => new DOMException(message, 'InvalidCharacterError');
  const missing = (name) => {
    const error = new TypeError(`The "${name}" argument must be specified`);
    error.code = 'ERR_MISSING_ARGS';
    return error;
  };
  hidden('btoa', function btoa(text) {
    if (arguments.length === 0) throw missing('data');
    text = String(text);
    for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 255) throw invalid('Invalid character');
    return decode(encode(text, 'latin1'), 'base64', false);
  });
  hidden('atob', function atob(text) {
    if (arguments.length === 0) throw missing('data');
    text = String(text).replace(/[\t\n\f\r ]/g, '');
    const digits = text.length % 4 === 0 ? text.replace(/==?$/, '') : text;
    if (digits.length % 4 === 1 || /[^A-Za-z0-9+/]/.test(digits)) {
      throw invalid('The string to be decoded is not correctly encoded.');
    }
    return decode(encode(digits, 'base64'), 'latin1', false);
  });

  // Objects of the platform whose state is not in properties, as far as `view` does not know them.
  const hostObjects = [];
  captured.neverClones = (isOne) => { hostObjects[hostObjects.length] = isOne; };
  const isOfPlatform = (object) => {
    for (let i = 0; i < hostObjects.length; i++) if (hostObjects[i](object)) return true;
    return false;
  };
  // Plain data, errors, dates, regular expressions, maps, sets and buffers, with cycles; everything else throws.
  // The buffers that `options.transfer` names are moved: the original is detached.
  hidden('structuredClone', function structuredClone(value, options = undefined) {
    if (arguments.length === 0) throw missing('value');
    if (options !== undefined && options !== null && typeof options !== 'object' && typeof options !== 'function') {
      const error = new TypeError('The options argument must be either an object or undefined');
      error.code = 'ERR_INVALID_ARG_TYPE';
      throw error;
    }
    const seen = new Map();
    const moved = new Set();
    for (const item of options?.transfer ?? []) {
      if (!(item instanceof ArrayBuffer)) {
        const error = new TypeError('Found invalid object in transferList');
        error.code = 'ERR_INVALID_TRANSFER_OBJECT';
        throw error;
      }
      if (moved.has(item)) throw new DOMException('ArrayBuffer occurs in the transfer list more than once', 'DataCloneError');
      if (item.detached) throw new DOMException('An ArrayBuffer is detached and could not be cloned.', 'DataCloneError');
      moved.add(item);
    }
    const refuse = (what) => new DOMException(`${what} could not be cloned.`, 'DataCloneError');
    const walk = (from) => {
      if (typeof from === 'symbol' || typeof from === 'function') throw refuse(String(from));
      if (typeof from !== 'object' || from === null) return from;
      if (seen.has(from)) return seen.get(from);
      const keep = (to) => { seen.set(from, to); return to; };
      const kind = captured.isEnvironment(from) ? 'plain' : native.kindOf(from);
      const named = () => refuse(`#<${from.constructor?.name ?? 'Object'}>`);
      if (kind === 'proxy' || from === global) throw refuse('#<Object>');
      if (Array.isArray(from)) {
        const to = keep(new Array(from.length));
        for (const key of Object.keys(from)) to[key] = walk(from[key]);
        return to;
      }
      if (ArrayBuffer.isView(from)) {
        const buffer = walk(from.buffer);
        const count = kind === 'data_view' ? from.byteLength : from.length;
        const To = kind === 'data_view' ? DataView : global[tagOf(from)];
        return keep(new To(buffer, from.byteOffset, count));
      }
      switch (kind) {
        case 'date':
          return keep(new Date(apply(getTime, from, [])));
        case 'regexp':
          return keep(new RegExp(from.source, from.flags));
        // Entries of the collection now: a getter of an entry may change it.
        case 'map': {
          const to = keep(new Map());
          const entries = [];
          apply(eachOfMap, from, [(entry, key) => { entries[entries.length] = [key, entry]; }]);
          for (const [key, entry] of entries) to.set(walk(key), walk(entry));
          return to;
        }
        case 'set': {
          const to = keep(new Set());
          const entries = [];
          apply(eachOfSet, from, [(entry) => { entries[entries.length] = entry; }]);
          for (const entry of entries) to.add(walk(entry));
          return to;
        }
        case 'array_buffer': {
          if (from.detached) throw refuse('An ArrayBuffer is detached and');
          if (!from.resizable) return keep(from.slice(0));
          const to = new ArrayBuffer(from.byteLength, { maxByteLength: from.maxByteLength });
          new Uint8Array(to).set(new Uint8Array(from));
          return keep(to);
        }
        case 'shared_array_buffer':
          return keep(from);
        case 'dom_exception': {
          const to = keep(new DOMException(from.message, from.name));
          to.stack = from.stack;
          return to;
        }
        case 'error': {
          const known = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
          const to = keep(new (known[from.name] ?? Error)(from.message));
          if ('cause' in from) defineProperty(to, 'cause', { value: walk(from.cause), writable: true, configurable: true });
          to.stack = from.stack;
          return to;
        }
        case 'number': case 'string': case 'boolean': case 'bigint':
          return keep(Object(from.valueOf()));
        case 'plain':
          // The state of these is not in properties: a plain copy would lose it in silence.
          if (captured.view(from) !== undefined || isOfPlatform(from)) throw named();
          break;
        case 'symbol': throw refuse('[object Symbol]');
        case 'generator': throw refuse('[object Generator]');
        case 'async_generator': throw refuse('[object AsyncGenerator]');
        case 'namespace': throw refuse('[object Module]');
        // Promises, weak references and collections, iterators and whatever else has state of its own.
        default: throw named();
      }
      const to = keep({});
      for (const key of Object.keys(from)) {
        // Not an assignment: a key may be `__proto__`.
        defineProperty(to, key, { value: walk(from[key]), writable: true, enumerable: true, configurable: true });
      }
      return to;
    };
    const copy = walk(value);
    // Only now: an error above leaves everything as it was.
    for (const buffer of moved) buffer.transfer();
    return copy;
  });
  const tagGetter = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag).get;
  const tagOf = (view) => captured.apply(tagGetter, view, []);
}
