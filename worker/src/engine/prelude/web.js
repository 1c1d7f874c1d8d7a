// Small parts of the web platform: TextEncoder, TextDecoder, atob, btoa, structuredClone.
(function (native, captured) {
  'use strict';
  const global = globalThis;
  const { defineProperty } = Object;
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
    #encoding; #fatal; #ignoreBOM;
    constructor(label = 'utf-8', options = {}) {
      const name = String(label).trim().toLowerCase();
      const known = { 'utf-8': 'utf-8', utf8: 'utf-8', 'utf-16le': 'utf-16le', 'utf-16': 'utf-16le',
        latin1: 'windows-1252', ascii: 'windows-1252', 'iso-8859-1': 'windows-1252' }[name];
      if (known === undefined) throw new RangeError(`The "${label}" encoding is not supported`);
      this.#encoding = known;
      this.#fatal = Boolean(options.fatal);
      this.#ignoreBOM = Boolean(options.ignoreBOM);
    }
    get encoding() { return this.#encoding; }
    get fatal() { return this.#fatal; }
    get ignoreBOM() { return this.#ignoreBOM; }
    decode(input, options) {
      if (options?.stream) throw new TypeError('TextDecoder: streaming is not supported');
      if (input === undefined) return '';
      const view = ArrayBuffer.isView(input) ? input : new Uint8Array(input);
      const bytes = view instanceof Uint8Array ? view : new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
      const text = decode(bytes, this.#encoding === 'windows-1252' ? 'latin1' : this.#encoding, this.#fatal);
      return !this.#ignoreBOM && text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
    }
  }
  hidden('TextEncoder', TextEncoder);
  hidden('TextDecoder', TextDecoder);

  const invalid = (message) => new DOMException(message, 'InvalidCharacterError');
  hidden('btoa', function btoa(text) {
    text = String(text);
    for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 255) throw invalid('Invalid character');
    return decode(encode(text, 'latin1'), 'base64', false);
  });
  hidden('atob', function atob(text) {
    text = String(text).replace(/[\t\n\f\r ]/g, '');
    const digits = text.length % 4 === 0 ? text.replace(/==?$/, '') : text;
    if (digits.length % 4 === 1 || /[^A-Za-z0-9+/]/.test(digits)) {
      throw invalid('The string to be decoded is not correctly encoded.');
    }
    return decode(encode(digits, 'base64'), 'latin1', false);
  });

  // Plain data, errors, dates, regular expressions, maps, sets and buffers, with cycles; functions and symbols throw.
  hidden('structuredClone', function structuredClone(value) {
    const seen = new Map();
    const refuse = (what) => new DOMException(`${what} could not be cloned.`, 'DataCloneError');
    const walk = (from) => {
      if (typeof from === 'symbol' || typeof from === 'function') throw refuse(String(from));
      if (typeof from !== 'object' || from === null) return from;
      if (seen.has(from)) return seen.get(from);
      const keep = (to) => { seen.set(from, to); return to; };
      if (Array.isArray(from)) {
        const to = keep(new Array(from.length));
        for (const key of Object.keys(from)) to[key] = walk(from[key]);
        return to;
      }
      if (from instanceof Date) return keep(new Date(from.getTime()));
      if (from instanceof RegExp) return keep(new RegExp(from.source, from.flags));
      if (from instanceof Map) {
        const to = keep(new Map());
        for (const [key, entry] of from) to.set(walk(key), walk(entry));
        return to;
      }
      if (from instanceof Set) {
        const to = keep(new Set());
        for (const entry of from) to.add(walk(entry));
        return to;
      }
      if (from instanceof ArrayBuffer) return keep(from.slice(0));
      if (ArrayBuffer.isView(from)) {
        const buffer = walk(from.buffer);
        const count = from instanceof DataView ? from.byteLength : from.length;
        const To = from instanceof DataView ? DataView : global[tagOf(from)];
        return keep(new To(buffer, from.byteOffset, count));
      }
      if (from instanceof Error) {
        const known = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
        const to = keep(new (known[from.name] ?? Error)(from.message));
        if ('cause' in from) defineProperty(to, 'cause', { value: walk(from.cause), writable: true, configurable: true });
        to.stack = from.stack;
        return to;
      }
      if (from instanceof Promise || from instanceof WeakMap || from instanceof WeakSet || from instanceof WeakRef) {
        throw refuse(`#<${from.constructor?.name ?? 'Object'}>`);
      }
      if (from instanceof Number || from instanceof String || from instanceof Boolean || from instanceof BigInt) {
        return keep(Object(from.valueOf()));
      }
      const to = keep({});
      for (const key of Object.keys(from)) to[key] = walk(from[key]);
      return to;
    };
    return walk(value);
  });
  const tagGetter = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag).get;
  const tagOf = (view) => captured.apply(tagGetter, view, []);
})
