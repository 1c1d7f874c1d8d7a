// Headers, Request and Response as values: bodies are read and written here, nothing is sent.
0,function (_own, native, captured) {
  'use strict';
  const { TypeError, RangeError, Symbol, Object, Reflect, Uint8Array, ArrayBuffer, JSON, Math } = captured.globals;
  const { apply, invalidType, wellFormed } = captured;
  const { isView } = ArrayBuffer;
  const { ReadableStream, isReadable, isDisturbed } = captured.part('readable');
  const { FormData, bytesOf, fromBytes, isForm, join, multipart, typeText } = captured.part('blob');
  const { URL, URLSearchParams, isParams } = captured.part('url');
  const { AbortSignal, isSignal, makeSignal } = captured.part('event');
  const { enumerable, invalidThis, tag } = captured.part('classes');

  const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
  const nameOf = (name) => {
    const text = `${name}`;
    if (!TOKEN.test(text)) throw new TypeError(`Headers: ${text} is an invalid header name.`);
    return text.toLowerCase();
  };
  const valueOf = (value) => {
    const text = `${value}`.replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, '');
    if (/[\0\n\r]|[^\0-\xff]/.test(text)) throw new TypeError(`Headers: ${text} is an invalid header value.`);
    return text;
  };

  let freeze;
  let fill;
  class Headers {
    // Lower-case names with their values in order.
    #map = { __proto__: null };
    // How each was written first, for the console.
    #written = { __proto__: null };
    #immutable = false;
    constructor(init = undefined) {
      if (init === null || (init !== undefined && typeof init !== 'object')) {
        throw new TypeError("Headers constructor: init is not one of sequence<sequence<ByteString>>, record<ByteString, ByteString>.");
      }
      if (init !== undefined) fill(this, init);
    }
    static #of(value) {
      if (typeof value !== 'object' || value === null || !(#map in value)) throw invalidThis('Headers');
      return value;
    }
    #check() { if (this.#immutable) throw new TypeError('immutable'); }
    append(name, value) {
      const self = Headers.#of(this);
      const key = nameOf(name);
      const text = valueOf(value);
      self.#check();
      self.#written[key] ??= `${name}`;
      (self.#map[key] ??= []).push(text);
    }
    delete(name) {
      const self = Headers.#of(this);
      const key = nameOf(name);
      self.#check();
      delete self.#map[key];
      delete self.#written[key];
    }
    get(name) {
      const values = Headers.#of(this).#map[nameOf(name)];
      return values === undefined ? null : values.join(', ');
    }
    getSetCookie() { return [...Headers.#of(this).#map['set-cookie'] ?? []]; }
    has(name) { return Headers.#of(this).#map[nameOf(name)] !== undefined; }
    set(name, value) {
      const self = Headers.#of(this);
      const key = nameOf(name);
      const text = valueOf(value);
      self.#check();
      self.#written[key] ??= `${name}`;
      self.#map[key] = [text];
    }
    // Sorted; each cookie is an entry of its own.
    #entries() {
      const entries = [];
      for (const name of Object.keys(this.#map).sort()) {
        if (name === 'set-cookie') for (const value of this.#map[name]) entries.push([name, value]);
        else entries.push([name, this.#map[name].join(', ')]);
      }
      return entries;
    }
    forEach(callback, thisArg = undefined) {
      if (typeof callback !== 'function') throw invalidType("Failed to execute 'forEach' on 'Headers': parameter 1 is not of type 'Function'.");
      for (const [name, value] of Headers.#of(this).#entries()) apply(callback, thisArg, [value, name, this]);
    }
    entries() { return Headers.#of(this).#entries().values(); }
    * keys() { for (const [name] of Headers.#of(this).#entries()) yield name; }
    * values() { for (const [, value] of Headers.#of(this).#entries()) yield value; }
    static {
      freeze = (headers) => { headers.#immutable = true; return headers; };
      fill = (headers, init) => {
        if (#map in init) {
          for (const name of Object.keys(init.#map)) {
            headers.#map[name] = [...init.#map[name]];
            headers.#written[name] = init.#written[name];
          }
        } else if (typeof init[Symbol.iterator] === 'function') {
          for (const pair of init) {
            const values = [...pair];
            if (values.length !== 2) {
              throw new TypeError('Headers constructor: expected name/value pair to be length 2, found ' + values.length + '.');
            }
            headers.append(values[0], values[1]);
          }
        } else {
          for (const name of Reflect.ownKeys(init)) {
            if (!Reflect.getOwnPropertyDescriptor(init, name)?.enumerable) continue;
            headers.append(name, init[name]);
          }
        }
      };
      captured.showAs((object) => {
        if (!(#map in object)) return undefined;
        const shown = {};
        for (const name of Object.keys(object.#map)) shown[object.#written[name] ?? name] = object.#map[name].join(', ');
        return shown;
      });
    }
  }
  Object.defineProperty(Headers.prototype, Symbol.iterator,
    { value: Headers.prototype.entries, writable: true, configurable: true });
  enumerable(Headers.prototype, ['append', 'delete', 'get', 'getSetCookie', 'has', 'set', 'forEach', 'entries', 'keys', 'values']);
  tag(Headers.prototype, 'Headers');

  // The bytes or the stream of a body, and its content type.
  const extract = (body) => {
    const bytes = bytesOf(body);
    if (bytes !== undefined) return { bytes, stream: undefined, type: typeText(body) || undefined };
    if (isReadable(body)) {
      if (body.locked || isDisturbed(body)) throw new TypeError('Response body object should not be disturbed or locked');
      return { bytes: undefined, stream: body, type: undefined };
    }
    if (isForm(body)) {
      let digits = '';
      for (let i = 0; i < 11; i++) digits += Math.floor(Math.random() * 10);
      const boundary = `----formdata-vm-system-0${digits}`;
      return { bytes: multipart(body, boundary), stream: undefined, type: `multipart/form-data; boundary=${boundary}` };
    }
    if (isParams(body)) {
      return { bytes: native.encode(`${body}`, 'utf8'), stream: undefined, type: 'application/x-www-form-urlencoded;charset=UTF-8' };
    }
    if (body instanceof ArrayBuffer) return { bytes: new Uint8Array(body.slice(0)), stream: undefined, type: undefined };
    if (isView(body)) {
      return { bytes: new Uint8Array(body.buffer, body.byteOffset, body.byteLength).slice(), stream: undefined, type: undefined };
    }
    return { bytes: native.encode(wellFormed(body), 'utf8'), stream: undefined, type: 'text/plain;charset=UTF-8' };
  };
  const streamOf = (content) => (content.stream ??= new ReadableStream({
    type: 'bytes',
    pull(controller) {
      if (content.bytes.length > 0) controller.enqueue(content.bytes.slice());
      controller.close();
    },
  }));

  let parseForm;
  class Body {
    // undefined: no body.
    #content; #headers;
    constructor(headers) { this.#headers = headers; }
    static #of(value) {
      if (typeof value !== 'object' || value === null || !(#content in value)) throw invalidThis('Body');
      return value;
    }
    get body() {
      const content = Body.#of(this).#content;
      return content === undefined ? null : streamOf(content);
    }
    get bodyUsed() { return Body.#used(Body.#of(this).#content); }
    static #used(content) { return content !== undefined && (content.used || (content.stream !== undefined && isDisturbed(content.stream))); }
    async #consume() {
      const content = Body.#of(this).#content;
      if (content === undefined) return new Uint8Array(0);
      if (Body.#used(content) || content.stream?.locked) throw new TypeError('Body is unusable: Body has already been read');
      if (content.bytes !== undefined && content.stream === undefined) {
        content.used = true;
        return content.bytes.slice();
      }
      const parts = [];
      const reader = content.stream.getReader();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return join(parts);
        if (!(value instanceof Uint8Array)) throw new TypeError('Received non-Uint8Array chunk');
        parts.push(value);
      }
    }
    async arrayBuffer() { return (await this.#consume()).buffer; }
    async bytes() { return this.#consume(); }
    async blob() { return fromBytes(await this.#consume(), (this.#headers.get('content-type') ?? '').toLowerCase()); }
    async text() {
      const text = native.decode(await this.#consume(), 'utf8', false);
      return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
    }
    async json() {
      const text = native.decode(await this.#consume(), 'utf8', false);
      return JSON.parse(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text);
    }
    async formData() {
      const type = this.#headers.get('content-type') ?? '';
      const bytes = await this.#consume();
      return parseForm(bytes, type);
    }
    static {
      Body.set = (owner, body) => {
        if (body === null || body === undefined) return;
        owner.#content = extract(body);
        const { type } = owner.#content;
        if (type !== undefined && !owner.#headers.has('content-type')) owner.#headers.append('content-type', type);
      };
      Body.copy = (owner, from) => {
        const content = from.#content;
        if (content === undefined) return;
        if (Body.#used(content) || content.stream?.locked) throw new TypeError('Body has already been consumed.');
        if (content.stream === undefined) { owner.#content = { bytes: content.bytes, stream: undefined }; return; }
        const [one, two] = content.stream.tee();
        from.#content = { bytes: undefined, stream: one };
        owner.#content = { bytes: undefined, stream: two };
      };
      Body.move = (owner, from) => {
        const content = from.#content;
        if (content === undefined) return;
        if (Body.#used(content) || content.stream?.locked) {
          throw new TypeError('Cannot construct a Request with a Request object that has already been used.');
        }
        owner.#content = { ...content };
        content.used = true;
      };
      // For sending: its bytes, its stream, or nothing.
      Body.take = (owner) => {
        const content = owner.#content;
        if (content === undefined) return {};
        if (Body.#used(content) || content.stream?.locked) throw new TypeError('Body is unusable: Body has already been read');
        if (content.stream !== undefined) return { stream: content.stream };
        content.used = true;
        return { bytes: content.bytes };
      };
      // Showing a body does not make its stream.
      const fields = { locked: false, state: 'readable', supportsBYOB: false };
      const stream = Object.create(ReadableStream.prototype);
      for (const name of Object.keys(fields)) Object.defineProperty(stream, name, { value: fields[name], enumerable: true });
      Body.shown = (value) => {
        const content = value.#content;
        return { body: content === undefined ? null : content.stream ?? stream, used: Body.#used(content) };
      };
    }
  }
  const { set: setBody, copy: copyBody, move: moveBody, shown: shownBody, take: takeBody } = Body;
  for (const name of ['set', 'copy', 'move', 'shown', 'take']) delete Body[name];
  const bodyNames = ['body', 'bodyUsed', 'arrayBuffer', 'bytes', 'blob', 'text', 'json', 'formData'];

  parseForm = (bytes, type) => {
    const form = new FormData();
    if (/^application\/x-www-form-urlencoded(?:;|$)/i.test(type)) {
      for (const [name, value] of new URLSearchParams(native.decode(bytes, 'utf8', false))) form.append(name, value);
      return form;
    }
    const boundary = /^multipart\/form-data;(?:.*;)?\s*boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(type);
    if (boundary === null) throw new TypeError('Content-Type was not one of "multipart/form-data" or "application/x-www-form-urlencoded".');
    // One character for each byte.
    const text = native.decode(bytes, 'latin1', false);
    const mark = `--${boundary[1] ?? boundary[2]}`;
    const bad = () => new TypeError('Failed to parse body as FormData.');
    let at = text.indexOf(mark);
    if (at === -1) throw bad();
    for (;;) {
      at += mark.length;
      if (text.startsWith('--', at)) return form;
      if (!text.startsWith('\r\n', at)) throw bad();
      const headEnd = text.indexOf('\r\n\r\n', at);
      const end = text.indexOf(`\r\n${mark}`, headEnd);
      if (headEnd === -1 || end === -1) throw bad();
      const head = native.decode(native.encode(text.slice(at + 2, headEnd), 'latin1'), 'utf8', false);
      const plain = (value) => value.replace(/%0A/gi, '\n').replace(/%0D/gi, '\r').replace(/%22/g, '"');
      const name = /(?:^|\n)content-disposition:\s*form-data;.*?\bname="([^"]*)"/i.exec(head);
      if (name === null) throw bad();
      const file = /;\s*filename="([^"]*)"/i.exec(head);
      const part = native.encode(text.slice(headEnd + 4, end), 'latin1');
      if (file === null) form.append(plain(name[1]), native.decode(part, 'utf8', false));
      else {
        const kind = /(?:^|\n)content-type:\s*([^\r\n]*)/i.exec(head);
        form.append(plain(name[1]), fromBytes(part, kind === null ? 'text/plain' : kind[1]), plain(file[1]));
      }
      at = end + 2;
    }
  };

  let makeResponse;
  let requestParts;
  const NULL_BODY = [101, 103, 204, 205, 304];
  class Response extends Body {
    #status = 200; #statusText = ''; #headers; #type = 'default'; #url = ''; #redirected = false;
    constructor(body = null, init = undefined) {
      if (init !== undefined && init !== null && typeof init !== 'object') throw new TypeError('Response constructor: Expected init to be an object.');
      const headers = new Headers(init?.headers ?? undefined);
      super(headers);
      this.#headers = headers;
      const status = init?.status === undefined ? 200 : +init.status & 0xffff;
      if (status < 200 || status > 599) throw new RangeError('init["status"] must be in the range of 200 to 599, inclusive.');
      const text = init?.statusText === undefined ? '' : `${init.statusText}`;
      if (/[^\t\x20-\x7e\x80-\xff]/.test(text)) throw new TypeError('Invalid statusText');
      this.#status = status;
      this.#statusText = text;
      if (body !== null && body !== undefined) {
        if (NULL_BODY.includes(status)) throw new TypeError(`Response constructor: Invalid response status code ${status}`);
        setBody(this, body);
      }
    }
    static #of(value) {
      if (typeof value !== 'object' || value === null || !(#headers in value)) throw invalidThis('Response');
      return value;
    }
    static error() {
      const response = new Response();
      response.#status = 0;
      response.#type = 'error';
      freeze(response.#headers);
      return response;
    }
    static json(data, init = undefined) {
      const text = JSON.stringify(data);
      if (text === undefined) throw new TypeError('Value is not JSON serializable');
      const headers = new Headers(init?.headers ?? undefined);
      if (!headers.has('content-type')) headers.set('content-type', 'application/json');
      return new Response(text, { ...init, headers });
    }
    static redirect(url, status = 302) {
      const target = new URL(url);
      if (![301, 302, 303, 307, 308].includes(status)) throw new RangeError(`Invalid status code ${status}`);
      const response = new Response();
      response.#status = status;
      response.#headers.set('location', target.href);
      freeze(response.#headers);
      return response;
    }
    get type() { return Response.#of(this).#type; }
    get url() { return Response.#of(this).#url; }
    get redirected() { return Response.#of(this).#redirected; }
    get status() { return Response.#of(this).#status; }
    get ok() { const { status } = Response.#of(this); return status >= 200 && status <= 299; }
    get statusText() { return Response.#of(this).#statusText; }
    get headers() { return Response.#of(this).#headers; }
    clone() {
      const self = Response.#of(this);
      const copy = new Response();
      copy.#status = self.#status;
      copy.#statusText = self.#statusText;
      copy.#type = self.#type;
      copy.#url = self.#url;
      copy.#redirected = self.#redirected;
      fill(copy.#headers, self.#headers);
      copyBody(copy, self);
      return copy;
    }
    static {
      makeResponse = ({ status, statusText, headers, url, redirected, body }) => {
        const response = new Response();
        for (const [name, value] of headers) response.#headers.append(name, value);
        response.#status = status;
        response.#statusText = statusText;
        response.#url = url;
        response.#redirected = redirected;
        response.#type = 'basic';
        if (body !== null) setBody(response, body);
        freeze(response.#headers);
        return response;
      };
      captured.showAs((object) => {
        if (!(#headers in object)) return undefined;
        const { body, used } = shownBody(object);
        const status = object.#status;
        return { status, statusText: object.#statusText, headers: object.#headers, body, bodyUsed: used,
          ok: status >= 200 && status <= 299, redirected: object.#redirected, type: object.#type, url: object.#url };
      });
    }
  }
  enumerable(Response.prototype, ['type', 'url', 'redirected', 'status', 'ok', 'statusText', 'headers', 'clone']);
  tag(Response.prototype, 'Response');

  const OPTIONS = { __proto__: null, mode: 'cors', credentials: 'same-origin', cache: 'default', redirect: 'follow', referrer: 'about:client',
    referrerPolicy: '', integrity: '', keepalive: false };
  class Request extends Body {
    #method = 'GET'; #url; #headers; #signal; #options;
    constructor(input, init = undefined) {
      if (arguments.length === 0) throw new TypeError('Request constructor: 1 argument required, but only 0 present.');
      const from = typeof input === 'object' && input !== null && #headers in input ? input : undefined;
      const headers = new Headers(init?.headers ?? from?.#headers ?? undefined);
      super(headers);
      this.#headers = headers;
      if (from === undefined) {
        let url;
        try { url = new URL(input); } catch (cause) { throw new TypeError(`Failed to parse URL from ${input}`, { cause }); }
        if (url.username !== '' || url.password !== '') throw new TypeError(`Request cannot be constructed from a URL that includes credentials: ${input}`);
        this.#url = url.href;
        this.#options = { __proto__: null, ...OPTIONS };
      } else {
        this.#url = from.#url;
        this.#method = from.#method;
        this.#options = { __proto__: null, ...from.#options };
      }
      for (const name of Object.keys(OPTIONS)) {
        const value = init?.[name];
        if (value !== undefined) this.#options[name] = name === 'keepalive' ? !!value : `${value}`;
      }
      if (init?.method !== undefined) {
        const method = `${init.method}`;
        const upper = method.toUpperCase();
        if (!TOKEN.test(method) || upper === 'CONNECT' || upper === 'TRACE' || upper === 'TRACK') {
          throw new TypeError(`'${method}' is not a valid HTTP method.`);
        }
        this.#method = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH'].includes(upper) ? upper : method;
      }
      const signal = init?.signal === undefined ? from?.#signal : init.signal;
      if (signal !== undefined && signal !== null && !isSignal(signal)) {
        throw new TypeError('Failed to construct \'Request\': member signal is not of type AbortSignal.');
      }
      this.#signal = signal === undefined || signal === null ? makeSignal() : AbortSignal.any([signal]);
      const body = init?.body;
      const idle = this.#method === 'GET' || this.#method === 'HEAD';
      if (body !== undefined && body !== null) {
        if (idle) throw new TypeError('Request with GET/HEAD method cannot have body.');
        if (isReadable(body) && init.duplex === undefined) {
          throw new TypeError('RequestInit: duplex option is required when sending a body.');
        }
        setBody(this, body);
      } else if (from !== undefined && body === undefined) {
        if (from.body !== null && idle) throw new TypeError('Request with GET/HEAD method cannot have body.');
        moveBody(this, from);
      }
    }
    static #of(value) {
      if (typeof value !== 'object' || value === null || !(#headers in value)) throw invalidThis('Request');
      return value;
    }
    get method() { return Request.#of(this).#method; }
    get url() { return Request.#of(this).#url; }
    get headers() { return Request.#of(this).#headers; }
    get destination() { Request.#of(this); return ''; }
    get referrer() { return Request.#of(this).#options.referrer; }
    get referrerPolicy() { return Request.#of(this).#options.referrerPolicy; }
    get mode() { return Request.#of(this).#options.mode; }
    get credentials() { return Request.#of(this).#options.credentials; }
    get cache() { return Request.#of(this).#options.cache; }
    get redirect() { return Request.#of(this).#options.redirect; }
    get integrity() { return Request.#of(this).#options.integrity; }
    get keepalive() { return Request.#of(this).#options.keepalive; }
    get isReloadNavigation() { Request.#of(this); return false; }
    get isHistoryNavigation() { Request.#of(this); return false; }
    get signal() { return Request.#of(this).#signal; }
    get duplex() { Request.#of(this); return 'half'; }
    clone() {
      const self = Request.#of(this);
      const copy = new Request(self.#url, { method: self.#method, headers: self.#headers, signal: self.#signal, ...self.#options });
      copyBody(copy, self);
      return copy;
    }
    static {
      requestParts = (request) => ({
        method: request.#method, url: request.#url, headers: [...Headers.prototype.entries.call(request.#headers)],
        redirect: request.#options.redirect, signal: request.#signal, ...takeBody(request),
      });
      captured.showAs((object) => {
        if (!(#headers in object)) return undefined;
        const options = object.#options;
        return { method: object.#method, url: object.#url, headers: object.#headers, destination: '', referrer: options.referrer,
          referrerPolicy: options.referrerPolicy, mode: options.mode, credentials: options.credentials, cache: options.cache,
          redirect: options.redirect, integrity: options.integrity, keepalive: options.keepalive, isReloadNavigation: false,
          isHistoryNavigation: false, signal: object.#signal };
      });
    }
  }
  enumerable(Request.prototype, ['method', 'url', 'headers', 'destination', 'referrer', 'referrerPolicy', 'mode', 'credentials', 'cache',
    'redirect', 'integrity', 'keepalive', 'isReloadNavigation', 'isHistoryNavigation', 'signal', 'duplex', 'clone']);
  tag(Request.prototype, 'Request');
  // Their shared members belong to each of the two classes, which have no common one.
  for (const Class of [Request, Response]) {
    for (const name of bodyNames) {
      Object.defineProperty(Class.prototype, name, { ...Object.getOwnPropertyDescriptor(Body.prototype, name), enumerable: true });
    }
    Object.setPrototypeOf(Class.prototype, Object.prototype);
  }

  return { Headers, Request, Response, makeResponse, requestParts };
}
