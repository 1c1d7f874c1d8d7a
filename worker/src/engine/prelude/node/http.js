// The modules `http` and `https`: clients, on the exchanges that `fetch` uses too. Servers are refused by name, and agents have no
// effect: the host keeps the connections.
0,function (_own, _native, captured) {
  'use strict';
  const { Object, Array, TypeError, Uint8Array, Buffer, clearTimeout, decodeURIComponent, setTimeout } = captured.globals;
  const { argumentType, error, unavailable } = captured.part('node_errors');
  const { events: EventEmitter } = captured.part('node_events');
  const { Readable, Writable } = captured.part('node_stream').stream;
  const { begin } = captured.part('exchange');
  const { URL } = captured.part('url');

  const STATUS_CODES = {
    100: 'Continue', 101: 'Switching Protocols', 102: 'Processing', 103: 'Early Hints', 200: 'OK', 201: 'Created', 202: 'Accepted',
    203: 'Non-Authoritative Information', 204: 'No Content', 205: 'Reset Content', 206: 'Partial Content', 207: 'Multi-Status',
    208: 'Already Reported', 226: 'IM Used', 300: 'Multiple Choices', 301: 'Moved Permanently', 302: 'Found', 303: 'See Other',
    304: 'Not Modified', 305: 'Use Proxy', 307: 'Temporary Redirect', 308: 'Permanent Redirect', 400: 'Bad Request', 401: 'Unauthorized',
    402: 'Payment Required', 403: 'Forbidden', 404: 'Not Found', 405: 'Method Not Allowed', 406: 'Not Acceptable',
    407: 'Proxy Authentication Required', 408: 'Request Timeout', 409: 'Conflict', 410: 'Gone', 411: 'Length Required',
    412: 'Precondition Failed', 413: 'Payload Too Large', 414: 'URI Too Long', 415: 'Unsupported Media Type', 416: 'Range Not Satisfiable',
    417: 'Expectation Failed', 418: "I'm a Teapot", 421: 'Misdirected Request', 422: 'Unprocessable Entity', 423: 'Locked',
    424: 'Failed Dependency', 425: 'Too Early', 426: 'Upgrade Required', 428: 'Precondition Required', 429: 'Too Many Requests',
    431: 'Request Header Fields Too Large', 451: 'Unavailable For Legal Reasons', 500: 'Internal Server Error', 501: 'Not Implemented',
    502: 'Bad Gateway', 503: 'Service Unavailable', 504: 'Gateway Timeout', 505: 'HTTP Version Not Supported',
    506: 'Variant Also Negotiates', 507: 'Insufficient Storage', 508: 'Loop Detected', 509: 'Bandwidth Limit Exceeded',
    510: 'Not Extended', 511: 'Network Authentication Required',
  };
  const METHODS = ['ACL', 'BIND', 'CHECKOUT', 'CONNECT', 'COPY', 'DELETE', 'GET', 'HEAD', 'LINK', 'LOCK', 'M-SEARCH', 'MERGE', 'MKACTIVITY',
    'MKCALENDAR', 'MKCOL', 'MOVE', 'NOTIFY', 'OPTIONS', 'PATCH', 'POST', 'PROPFIND', 'PROPPATCH', 'PURGE', 'PUT', 'REBIND', 'REPORT', 'SEARCH',
    'SOURCE', 'SUBSCRIBE', 'TRACE', 'UNBIND', 'UNLINK', 'UNLOCK', 'UNSUBSCRIBE'];
  const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
  const validateHeaderName = (name) => {
    if (typeof name !== 'string' || !TOKEN.test(name)) {
      throw error('ERR_INVALID_HTTP_TOKEN', `Header name must be a valid HTTP token ["${name}"]`, TypeError);
    }
  };
  const validateHeaderValue = (name, value) => {
    if (value === undefined) throw error('ERR_HTTP_INVALID_HEADER_VALUE', `Invalid value "${value}" for header "${name}"`, TypeError);
    if (/[^\t\x20-\x7e\x80-\xff]/.test(`${value}`)) throw error('ERR_INVALID_CHAR', `Invalid character in header content ["${name}"]`, TypeError);
  };
  // Of these a response has one value; the first counts.
  const SINGLE = ['age', 'authorization', 'content-length', 'content-type', 'etag', 'expires', 'from', 'host', 'if-modified-since',
    'if-unmodified-since', 'last-modified', 'location', 'max-forwards', 'proxy-authorization', 'referer', 'retry-after', 'server', 'user-agent'];

  class IncomingMessage extends Readable {
    constructor(exchange, status, reason, fields, http2) {
      super({ read() { this.#next(); } });
      this.#exchange = exchange;
      this.statusCode = status;
      this.statusMessage = reason;
      [this.httpVersionMajor, this.httpVersionMinor] = http2 ? [2, 0] : [1, 1];
      this.httpVersion = `${this.httpVersionMajor}.${this.httpVersionMinor}`;
      this.rawHeaders = fields;
      this.headers = {};
      this.headersDistinct = { __proto__: null };
      this.trailers = {};
      this.rawTrailers = [];
      this.complete = false;
      this.aborted = false;
      this.url = '';
      this.method = null;
      this.socket = null;
      for (let i = 0; i < fields.length; i += 2) {
        const [name, value] = [fields[i].toLowerCase(), fields[i + 1]];
        (this.headersDistinct[name] ??= []).push(value);
        if (name === 'set-cookie') (this.headers[name] ??= []).push(value);
        else if (this.headers[name] === undefined) this.headers[name] = value;
        else if (!SINGLE.includes(name)) this.headers[name] += (name === 'cookie' ? '; ' : ', ') + value;
      }
    }
    #exchange;
    #pieces = [];
    #wants = false;
    #ended = false;
    #next() {
      if (this.#pieces.length > 0) {
        this.#exchange.pull();
        this.push(this.#pieces.shift());
      } else if (this.#ended) {
        this.complete = true;
        this.push(null);
      } else this.#wants = true;
    }
    #wake() {
      if (!this.#wants) return;
      this.#wants = false;
      this.#next();
    }
    static {
      IncomingMessage.parts = {
        data(message, bytes) {
          message.#pieces.push(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
          message.#wake();
        },
        end(message) {
          message.#ended = true;
          message.#wake();
        },
        failed(message, cause) {
          message.aborted = true;
          message.emit('aborted');
          message.destroy(cause);
        },
      };
    }
    setTimeout(_ms, callback = undefined) {
      if (callback !== undefined) this.on('timeout', callback);
      return this;
    }
    _destroy(cause, callback) {
      this.#exchange.close();
      callback(cause);
    }
  }
  const incoming = IncomingMessage.parts;
  delete IncomingMessage.parts;

  // The options of a request: a URL or its text, an object, or both.
  const optionsOf = (scheme, args) => {
    let [input, options, callback] = args;
    let given = {};
    if (typeof input === 'string' || input instanceof URL) {
      const url = typeof input === 'string' ? new URL(input) : input;
      given = { protocol: url.protocol, hostname: url.hostname.replace(/^\[|\]$/g, ''), port: url.port, path: `${url.pathname}${url.search}` };
      if (url.username !== '' || url.password !== '') given.auth = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
    } else {
      callback = options;
      options = input;
    }
    if (typeof options === 'function') { callback = options; options = undefined; }
    if (options !== undefined && options !== null && typeof options !== 'object') throw argumentType('options', 'object', options);
    return [{ protocol: `${scheme}:`, ...given, ...options }, callback];
  };

  class ClientRequest extends Writable {
    #headers = new captured.globals.Map();
    #first;
    #exchange;
    #waiting;
    #response;
    #timer;
    #ending = false;
    constructor(scheme, args) {
      const [options, callback] = optionsOf(scheme, args);
      super({ decodeStrings: true, autoDestroy: false });
      const { protocol } = options;
      if (protocol !== 'http:' && protocol !== 'https:') throw error('ERR_INVALID_PROTOCOL', `Protocol "${protocol}" not supported. Expected "${scheme}:"`, TypeError);
      if (protocol !== `${scheme}:`) throw error('ERR_INVALID_PROTOCOL', `Protocol "${protocol}" not supported. Expected "${scheme}:"`, TypeError);
      if (options.method !== undefined && options.method !== null && typeof options.method !== 'string') throw argumentType('options.method', 'string', options.method);
      this.method = (options.method ?? 'GET').toUpperCase();
      if (!TOKEN.test(this.method)) throw error('ERR_INVALID_HTTP_TOKEN', `Method must be a valid HTTP token ["${this.method}"]`, TypeError);
      this.path = options.path ?? '/';
      if (/[^\x21-\xff]/.test(this.path)) throw error('ERR_UNESCAPED_CHARACTERS', 'Request path contains unescaped characters', TypeError);
      if (options.socketPath !== undefined || options.createConnection !== undefined) throw unavailable(`${scheme}.request with a socket of its own`, 'sessions have no sockets');
      this.protocol = protocol;
      this.host = options.hostname ?? options.host ?? 'localhost';
      this.port = options.port || options.defaultPort;
      this.agent = options.agent;
      this.aborted = false;
      this.reusedSocket = false;
      this.maxHeadersCount = null;
      this.socket = null;
      this.res = null;
      const { headers } = options;
      if (Array.isArray(headers)) {
        for (let i = 0; i < headers.length; i += 2) this.appendHeader(headers[i], headers[i + 1]);
      } else if (headers !== undefined && headers !== null) {
        for (const name of Object.keys(headers)) this.setHeader(name, headers[name]);
      }
      if (options.auth !== undefined && !this.hasHeader('authorization')) {
        this.setHeader('Authorization', `Basic ${Buffer.from(options.auth).toString('base64')}`);
      }
      if (callback !== undefined) this.once('response', callback);
      if (options.timeout !== undefined) this.setTimeout(options.timeout);
      const { signal } = options;
      if (signal !== undefined) {
        const abort = () => this.destroy(captured.part('node_errors').abort(signal));
        if (signal.aborted) captured.globals.process.nextTick(abort);
        else {
          signal.addEventListener('abort', abort);
          this.once('close', () => signal.removeEventListener('abort', abort));
        }
      }
    }
    setHeader(name, value) {
      if (this.#exchange !== undefined) throw error('ERR_HTTP_HEADERS_SENT', 'Cannot set headers after they are sent to the client');
      validateHeaderName(name);
      for (const one of Array.isArray(value) ? value : [value]) validateHeaderValue(name, one);
      this.#headers.set(name.toLowerCase(), [name, value]);
      return this;
    }
    appendHeader(name, value) {
      const before = this.getHeader(name);
      return this.setHeader(name, before === undefined ? value : [].concat(before, value));
    }
    setHeaders(headers) {
      for (const [name, value] of headers) this.setHeader(name, value);
      return this;
    }
    getHeader(name) { return this.#headers.get(`${name}`.toLowerCase())?.[1]; }
    hasHeader(name) { return this.#headers.has(`${name}`.toLowerCase()); }
    removeHeader(name) {
      if (this.#exchange !== undefined) throw error('ERR_HTTP_HEADERS_SENT', 'Cannot remove headers after they are sent to the client');
      this.#headers.delete(`${name}`.toLowerCase());
    }
    getHeaderNames() { return [...this.#headers.keys()]; }
    getRawHeaderNames() { return [...this.#headers.values()].map(([name]) => name); }
    getHeaders() {
      const headers = { __proto__: null };
      for (const [key, [, value]] of this.#headers) headers[key] = value;
      return headers;
    }
    get headersSent() { return this.#exchange !== undefined; }
    get finished() { return this.writableEnded; }
    flushHeaders() { this.#open(undefined, false); }
    setNoDelay() { return this; }
    setSocketKeepAlive() { return this; }
    cork() {}
    uncork() {}
    setTimeout(ms, callback = undefined) {
      if (callback !== undefined) this.once('timeout', callback);
      clearTimeout(this.#timer);
      if (ms > 0) {
        this.#timer = setTimeout(() => this.emit('timeout'), ms);
        this.#timer.unref();
      }
      return this;
    }
    abort() {
      if (this.aborted) return;
      this.aborted = true;
      captured.globals.process.nextTick(() => this.emit('abort'));
      this.destroy();
    }
    #open(bytes, end) {
      if (this.#exchange !== undefined || this.destroyed) return;
      const flat = [];
      for (const [name, value] of this.#headers.values()) {
        for (const one of Array.isArray(value) ? value : [value]) flat.push(name, `${one}`);
      }
      const isIp6 = `${this.host}`.includes(':') && !`${this.host}`.startsWith('[');
      const url = `${this.protocol}//${isIp6 ? `[${this.host}]` : this.host}${this.port ? `:${this.port}` : ''}${this.path}`;
      const fail = (cause) => {
        if (this.#response !== undefined) incoming.failed(this.#response, cause.code === 'UND_ERR_SOCKET' ? error('ECONNRESET', 'aborted') : cause);
        else this.destroy(cause.code === 'UND_ERR_SOCKET' ? error('ECONNRESET', 'socket hang up') : cause);
      };
      try {
        this.#exchange = begin(this.method, url, flat, bytes, end, {
          head: (status, reason, fields, http2) => {
            const response = new IncomingMessage(this.#exchange, status, reason, fields, http2);
            this.#response = response;
            this.res = response;
            response.req = this;
            response.once('close', () => this.#close());
            if (this.listenerCount('response') === 0) response.resume();
            else this.emit('response', response);
          },
          data: (piece) => incoming.data(this.#response, piece),
          end: () => incoming.end(this.#response),
          failed: fail,
          sent: () => this.#taken(),
        });
        // Without a beginning of the body there is credit at once.
        if (bytes === undefined && !end) this.#taken();
      } catch (cause) {
        captured.globals.process.nextTick(fail, cause);
      }
    }
    #taken() {
      const waiting = this.#waiting;
      this.#waiting = undefined;
      this.#free = true;
      waiting?.();
    }
    #free = false;
    // Sends a piece when there is credit; `done` when it is taken.
    #send(bytes, last, done) {
      const send = () => {
        this.#free = false;
        if (last) {
          this.#exchange.send(bytes, true);
          done();
        } else {
          this.#waiting = done;
          this.#exchange.send(bytes, false);
        }
      };
      if (this.#free) send();
      else this.#waiting = send;
    }
    _write(chunk, _encoding, callback) {
      // A single piece is sent with its length; with a second one the body is sent in chunks.
      if (this.#exchange === undefined && this.#first === undefined && !this.hasHeader('content-length')) {
        this.#first = chunk;
        callback();
        return;
      }
      this.#begin();
      if (this.#exchange === undefined) { callback(); return; }
      this.#send(chunk, false, callback);
    }
    #begin() {
      const first = this.#first;
      this.#first = undefined;
      this.#open(first, false);
    }
    _final(callback) {
      this.#ending = true;
      if (this.#exchange === undefined) this.#open(this.#first, true);
      else if (this.#exchange.isOpen()) this.#send(new Uint8Array(0), true, () => {});
      callback();
    }
    #close() {
      clearTimeout(this.#timer);
      if (!this.destroyed) super.destroy();
    }
    _destroy(cause, callback) {
      clearTimeout(this.#timer);
      this.#exchange?.close();
      if (this.#response === undefined) {
        const why = cause ?? error('ECONNRESET', 'socket hang up');
        callback(this.#ending || this.#exchange !== undefined || cause ? why : null);
      } else {
        if (!this.#response.complete && !this.#response.destroyed) incoming.failed(this.#response, cause ?? error('ECONNRESET', 'aborted'));
        callback(cause);
      }
    }
  }

  class Agent extends EventEmitter {
    constructor(options = {}) {
      super();
      this.options = { ...options };
      this.keepAlive = options.keepAlive ?? false;
      this.maxSockets = options.maxSockets ?? captured.globals.Infinity;
      this.maxFreeSockets = options.maxFreeSockets ?? 256;
      [this.sockets, this.freeSockets, this.requests] = [{}, {}, {}];
    }
    getName() { return ''; }
    destroy() {}
  }
  const moduleOf = (scheme) => {
    const request = (...args) => new ClientRequest(scheme, args);
    const get = (...args) => {
      const made = new ClientRequest(scheme, args);
      made.end();
      return made;
    };
    const refused = (name) => ({ [name]: function () { throw unavailable(`${scheme}.${name}`, 'sessions have no servers'); } })[name];
    const exports = { Agent, ClientRequest: class extends ClientRequest { constructor(...args) { super(scheme, args); } }, IncomingMessage,
      METHODS, STATUS_CODES, Server: refused('Server'), ServerResponse: refused('ServerResponse'), createServer: refused('createServer'),
      globalAgent: new Agent({ keepAlive: true }), get, maxHeaderSize: 65536, request, validateHeaderName, validateHeaderValue };
    Object.defineProperty(exports.ClientRequest, 'name', { value: 'ClientRequest' });
    return exports;
  };
  const [http, https] = [moduleOf('http'), moduleOf('https')];
  return { http, https };
}
