// Blob, File and FormData.
0,function (_own, native, captured) {
  'use strict';
  const { TypeError, Symbol, Object, Uint8Array, ArrayBuffer, Date, Array, Math } = captured.globals;
  const { invalidType, wellFormed } = captured;
  const { apply } = captured;
  const { enumerable, invalidThis, missing, tag } = captured.part('classes');
  const { defineProperty, getOwnPropertyDescriptor } = Object;
  const { isView } = ArrayBuffer;
  const join = (parts) => {
    let size = 0;
    for (const part of parts) size += part.length;
    const bytes = new Uint8Array(size);
    let at = 0;
    for (const part of parts) { bytes.set(part, at); at += part.length; }
    return bytes;
  };
  const typeOf = (type) => {
    const text = `${type}`;
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      if (unit < 0x20 || unit > 0x7e) return '';
    }
    return text.toLowerCase();
  };

  let bytesOf;
  let fromBytes;
  class Blob {
    // Never changed.
    #bytes; #type = '';
    constructor(sources = [], options = undefined) {
      if (typeof sources !== 'object' && typeof sources !== 'function' || sources === null || typeof sources[Symbol.iterator] !== 'function') {
        throw invalidType('The "sources" argument must be an instance of Iterable.');
      }
      const endings = options?.endings === undefined ? 'transparent' : `${options.endings}`;
      if (endings !== 'transparent' && endings !== 'native') {
        throw captured.invalidValue(`The property 'options.endings' is invalid. Received '${endings}'`);
      }
      const parts = [];
      for (const source of sources) {
        if (typeof source === 'object' && source !== null && #bytes in source) parts.push(source.#bytes);
        else if (source instanceof ArrayBuffer) parts.push(new Uint8Array(source.slice(0)));
        else if (isView(source)) parts.push(new Uint8Array(source.buffer, source.byteOffset, source.byteLength).slice());
        else {
          const text = `${source}`;
          parts.push(native.encode(endings === 'native' ? text.replace(/\r\n?/g, '\n') : text, 'utf8'));
        }
      }
      this.#bytes = parts.length === 1 ? parts[0] : join(parts);
      if (options?.type !== undefined) this.#type = typeOf(options.type);
    }
    static #of(value) {
      if (typeof value !== 'object' || value === null || !(#bytes in value)) throw invalidThis('Blob');
      return value;
    }
    get size() { return Blob.#of(this).#bytes.length; }
    get type() { return Blob.#of(this).#type; }
    slice(start = 0, end = undefined, type = '') {
      const self = Blob.#of(this);
      return fromBytes(self.#bytes.subarray(+start || 0, end === undefined ? undefined : +end || 0), typeOf(type));
    }
    async arrayBuffer() { return Blob.#of(this).#bytes.slice().buffer; }
    async bytes() { return Blob.#of(this).#bytes.slice(); }
    async text() {
      const text = native.decode(Blob.#of(this).#bytes, 'utf8', false);
      return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
    }
    stream() {
      const bytes = Blob.#of(this).#bytes;
      const { ReadableStream } = captured.part('readable');
      let at = 0;
      return new ReadableStream({
        type: 'bytes',
        pull(controller) {
          if (at < bytes.length) controller.enqueue(bytes.slice(at, (at += 65_536)));
          if (at >= bytes.length) controller.close();
        },
      });
    }
    static {
      bytesOf = (value) => (typeof value === 'object' && value !== null && #bytes in value ? value.#bytes : undefined);
      fromBytes = (bytes, type) => {
        const blob = new Blob();
        blob.#bytes = bytes;
        blob.#type = type;
        return blob;
      };
    }
  }
  enumerable(Blob.prototype, ['size', 'type', 'slice', 'arrayBuffer', 'bytes', 'text', 'stream']);
  tag(Blob.prototype, 'Blob');

  let isFile;
  class File extends Blob {
    #name; #lastModified;
    constructor(sources, name, options = undefined) {
      if (arguments.length < 2) throw missing(arguments.length === 0 ? 'sources' : 'fileName');
      super(sources, options);
      this.#name = wellFormed(name);
      this.#lastModified = options?.lastModified === undefined ? Date.now() : Math.trunc(+options.lastModified) || 0;
    }
    static #of(value) {
      if (typeof value !== 'object' || value === null || !(#name in value)) throw invalidThis('File');
      return value;
    }
    get name() { return File.#of(this).#name; }
    get lastModified() { return File.#of(this).#lastModified; }
    static {
      isFile = (value) => typeof value === 'object' && value !== null && #name in value;
      captured.showAs((object) => (#name in object
        ? { size: bytesOf(object).length, type: typeText(object), name: object.#name, lastModified: object.#lastModified }
        : undefined));
    }
  }
  const typeGetter = getOwnPropertyDescriptor(Blob.prototype, 'type').get;
  const typeText = (blob) => apply(typeGetter, blob, []);
  captured.showAs((object) => {
    const bytes = bytesOf(object);
    return bytes === undefined ? undefined : { size: bytes.length, type: typeText(object) };
  });
  enumerable(File.prototype, ['name', 'lastModified']);
  tag(File.prototype, 'File');

  const quoted = (text) => text.replace(/\n/g, '%0A').replace(/\r/g, '%0D').replace(/"/g, '%22');
  let listOf;
  class FormData {
    // Names and values in turn.
    #list = [];
    constructor(form = undefined) {
      if (form !== undefined) throw invalidType("Failed to construct 'FormData': Argument 1 could not be converted to: undefined.");
    }
    static #of(value) {
      if (typeof value !== 'object' || value === null || !(#list in value)) throw invalidThis('FormData');
      return value;
    }
    static #value(value, name, given) {
      const bytes = bytesOf(value);
      if (bytes === undefined) {
        if (given) throw new TypeError("Failed to execute 'append' on 'FormData': parameter 2 is not of type 'Blob'");
        return wellFormed(value);
      }
      if (isFile(value) && name === undefined) return value;
      return new File([value], name === undefined ? 'blob' : `${name}`, { type: typeText(value) });
    }
    append(name, value, fileName = undefined) {
      const self = FormData.#of(this);
      if (arguments.length < 2) throw missing(arguments.length === 0 ? 'name' : 'value');
      self.#list.push(wellFormed(name), FormData.#value(value, fileName, arguments.length > 2));
    }
    delete(name) {
      const self = FormData.#of(this);
      const wanted = wellFormed(name);
      const kept = [];
      for (let i = 0; i < self.#list.length; i += 2) {
        if (self.#list[i] !== wanted) kept.push(self.#list[i], self.#list[i + 1]);
      }
      self.#list = kept;
    }
    get(name) {
      const values = FormData.#of(this).getAll(name);
      return values.length === 0 ? null : values[0];
    }
    getAll(name) {
      const list = FormData.#of(this).#list;
      const wanted = wellFormed(name);
      const values = [];
      for (let i = 0; i < list.length; i += 2) if (list[i] === wanted) values.push(list[i + 1]);
      return values;
    }
    has(name) { return FormData.#of(this).getAll(name).length > 0; }
    set(name, value, fileName = undefined) {
      const self = FormData.#of(this);
      if (arguments.length < 2) throw missing(arguments.length === 0 ? 'name' : 'value');
      const wanted = wellFormed(name);
      const next = FormData.#value(value, fileName, arguments.length > 2);
      const kept = [];
      let found = false;
      for (let i = 0; i < self.#list.length; i += 2) {
        if (self.#list[i] !== wanted) kept.push(self.#list[i], self.#list[i + 1]);
        else if (!found) { found = true; kept.push(wanted, next); }
      }
      if (!found) kept.push(wanted, next);
      self.#list = kept;
    }
    forEach(callback, thisArg = undefined) {
      for (const [name, value] of FormData.#of(this).entries()) apply(callback, thisArg, [value, name, this]);
    }
    * entries() {
      const self = FormData.#of(this);
      for (let i = 0; i < self.#list.length; i += 2) yield [self.#list[i], self.#list[i + 1]];
    }
    * keys() { for (const [name] of FormData.#of(this).entries()) yield name; }
    * values() { for (const [, value] of FormData.#of(this).entries()) yield value; }
    static {
      listOf = (value) => (typeof value === 'object' && value !== null && #list in value ? value.#list : undefined);
      captured.showAs((object) => {
        if (!(#list in object)) return undefined;
        const shown = { __proto__: Object.prototype };
        for (let i = 0; i < object.#list.length; i += 2) {
          const name = object.#list[i];
          const value = object.#list[i + 1];
          const known = getOwnPropertyDescriptor(shown, name)?.value;
          defineProperty(shown, name, { configurable: true, enumerable: true, writable: true,
            value: known === undefined ? value : Array.isArray(known) ? [...known, value] : [known, value] });
        }
        return shown;
      });
    }
  }
  defineProperty(FormData.prototype, Symbol.iterator, { value: FormData.prototype.entries, writable: true, configurable: true });
  enumerable(FormData.prototype, ['append', 'delete', 'get', 'getAll', 'has', 'set', 'forEach', 'entries', 'keys', 'values']);
  tag(FormData.prototype, 'FormData');

  // A form as multipart/form-data.
  const multipart = (form, boundary) => {
    const parts = [];
    const list = listOf(form);
    const lines = (text) => text.replace(/\r\n?|\n/g, '\r\n');
    for (let i = 0; i < list.length; i += 2) {
      const value = list[i + 1];
      const head = `--${boundary}\r\nContent-Disposition: form-data; name="${quoted(lines(list[i]))}"`;
      if (typeof value === 'string') parts.push(native.encode(`${head}\r\n\r\n${lines(value)}\r\n`, 'utf8'));
      else {
        parts.push(native.encode(
          `${head}; filename="${quoted(value.name)}"\r\nContent-Type: ${value.type || 'application/octet-stream'}\r\n\r\n`, 'utf8'));
        parts.push(bytesOf(value), native.encode('\r\n', 'utf8'));
      }
    }
    parts.push(native.encode(`--${boundary}--\r\n`, 'utf8'));
    return join(parts);
  };

  return { Blob, File, FormData, bytesOf, fromBytes, join, multipart, isForm: (value) => listOf(value) !== undefined,
    typeText };
}
